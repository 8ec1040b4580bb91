// The thread in which an engine runs: requests in order, bytes of files piece by piece.

import type { Message, Reply, Sent } from "./engine";

/** What `abi.rs` exports. */
interface Exports {
  memory: WebAssembly.Memory;
  room(bytes: number): number;
  ask(): number;
  feed(): number;
  answer(): number;
}

/** Bytes of a file that are read at once. */
const PIECE = 4 << 20;

let exports: Exports | undefined;

const reply = (what: Reply) => (postMessage as (what: Reply) => void)(what);

/** What the engine answers; throws what it refuses. */
function call(of: "ask" | "feed", bytes: Uint8Array): unknown {
  if (!exports) throw new Error("the engine has not started");
  // A call may make the memory grow, which is another buffer then.
  const room = exports.room(bytes.length);
  new Uint8Array(exports.memory.buffer, room, bytes.length).set(bytes);
  const length = exports[of]();
  const answer = new Uint8Array(exports.memory.buffer, exports.answer(), length);
  const { ok, error } = JSON.parse(new TextDecoder().decode(answer));
  if (error !== undefined) throw new Error(error);
  return ok;
}

const ask = (request: object) => call("ask", new TextEncoder().encode(JSON.stringify(request)));

async function read(id: number, files: Sent[]): Promise<void> {
  const of = files.reduce((sum, { file }) => sum + file.size, 0);
  let done = 0;
  for (const { before, file } of files) {
    ask(before);
    for (let at = 0; at < file.size; at += PIECE) {
      const piece = await file.slice(at, at + PIECE).arrayBuffer();
      call("feed", new Uint8Array(piece));
      done += piece.byteLength;
      reply({ id, done, of });
    }
  }
}

async function take(message: Message): Promise<unknown> {
  if ("module" in message) {
    const instance = await WebAssembly.instantiate(message.module, {});
    exports = instance.exports as unknown as Exports;
    return null;
  }
  await read(message.id, message.files ?? []);
  return ask(message.ask);
}

// One after the other: bytes of two files must not mix.
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
