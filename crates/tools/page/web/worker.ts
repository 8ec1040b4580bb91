// The thread in which an engine runs: requests in order, bytes of files as it pulls them.

import type { Message, Reply } from "./engine";

/** What `abi.rs` exports. */
interface Exports {
  memory: WebAssembly.Memory;
  room(bytes: number): number;
  ask(): number;
  answer(): number;
}

/** Workers have it; the compiler's list of pages does not. */
declare const FileReaderSync: new () => { readAsArrayBuffer(blob: Blob): ArrayBuffer };

const reader = new FileReaderSync();
/** Frees what is sent to it, since there is no other end. */
const nowhere = new MessageChannel();
nowhere.port2.close();
let exports: Exports | undefined;
/** The request that is being answered. */
let current: { id: number; files: Blob[] } = { id: 0, files: [] };

const reply = (what: Reply) => (postMessage as (what: Reply) => void)(what);

/** A call may make the memory grow, which is another buffer then. */
const memory = (at: number, length: number) =>
  new Uint8Array(exports!.memory.buffer, at >>> 0, length);

/** Writes the next bytes of a file to an address of the engine; how many, or -1 if it cannot. */
function pull(number: number, at: number, into: number, most: number): number {
  const { id, files } = current;
  const size = (file: Blob | undefined) => file?.size ?? 0;
  try {
    const piece = reader.readAsArrayBuffer(files[number]!.slice(at, at + most));
    const length = piece.byteLength;
    memory(into, length).set(new Uint8Array(piece));
    // While the engine runs the browser collects little: hundreds of megabytes would wait for it.
    nowhere.port1.postMessage(null, [piece]);
    const before = files.slice(0, number).reduce((sum, file) => sum + size(file), 0);
    const of = files.reduce((sum, file) => sum + size(file), 0);
    reply({ id, done: before + at + length, of });
    return length;
  } catch {
    return -1;
  }
}

async function take(message: Message): Promise<unknown> {
  if ("module" in message) {
    const instance = await WebAssembly.instantiate(message.module, { page: { pull } });
    exports = instance.exports as unknown as Exports;
    return null;
  }
  if (!exports) throw new Error("the engine has not started");
  current = { id: message.id, files: message.files ?? [] };
  const request = new TextEncoder().encode(JSON.stringify(message.ask));
  memory(exports.room(request.length), request.length).set(request);
  const length = exports.ask();
  const { ok, error } = JSON.parse(new TextDecoder().decode(memory(exports.answer(), length)));
  if (error !== undefined) throw new Error(error);
  return ok;
}

// One after the other: the engine starts before it is asked.
let last: Promise<void> = Promise.resolve();
onmessage = (event) => {
  const message = event.data as Message;
  last = last.then(async () => {
    try {
      reply({ id: message.id, ok: await take(message) });
    } catch (error) {
      // An engine that has panicked is not asked again.
      const isBroken = error instanceof WebAssembly.RuntimeError;
      const what = isBroken ? `the engine failed, which it should not: ${error}` : error;
      reply({ id: message.id, error: what instanceof Error ? what.message : `${what}`, isBroken });
    }
  });
};
