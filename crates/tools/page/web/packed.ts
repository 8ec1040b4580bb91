// Text that fits a link: compressed, in letters of addresses.

declare const CompressionStream: new (format: string) => GenericTransformStream;
declare const DecompressionStream: new (format: string) => GenericTransformStream;

/** No text of a link is longer: what it unpacks to is not trusted. */
const MOST = 1 << 20;

/** The text as letters, digits, `-` and `_`. */
export async function pack(text: string): Promise<string> {
  const packed = new Blob([text]).stream().pipeThrough<Uint8Array>(
    new CompressionStream("deflate-raw"));
  const bytes = new Uint8Array(await new Response(packed).arrayBuffer());
  const letters = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return letters.replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/** The text of such letters; fails if they are none. */
export async function unpack(letters: string): Promise<string> {
  const plain = atob(letters.replace(/-/g, "+").replace(/_/g, "/"));
  const bytes = Uint8Array.from(plain, (byte) => byte.charCodeAt(0));
  const reader = new Blob([bytes]).stream().pipeThrough<Uint8Array>(
    new DecompressionStream("deflate-raw")).getReader();
  const pieces: Uint8Array[] = [];
  for (let length = 0; length < MOST; ) {
    const { done, value } = await reader.read();
    if (done) break;
    pieces.push(value);
    length += value.length;
  }
  return new Blob(pieces).text();
}
