// The engine, as a promise for each request. It runs in a worker of its own, which can be stopped.

// All browsers have it; the compiler's list of 2022 does not.
declare const DecompressionStream: new (format: string) => GenericTransformStream;

/** What a worker is sent. */
export type Message =
  | { id: number; module: WebAssembly.Module }
  | { id: number; ask: object; files?: Blob[] };

/** What a worker sends back. */
export type Reply =
  | { id: number; done: number; of: number }
  | { id: number; ok: unknown }
  | { id: number; error: string; isBroken: boolean };

/** Bytes that have been read of all bytes. */
export type Progress = (done: number, of: number) => void;

interface Waiting {
  resolve: (value: never) => void;
  reject: (error: Error) => void;
  progress: Progress | undefined;
}

/** Somebody stopped it. */
export class Stopped extends Error {}

let compiled: Promise<WebAssembly.Module> | undefined;

/** The module of this page, compiled once. */
function module(): Promise<WebAssembly.Module> {
  compiled ??= (async () => {
    const text = atob(document.getElementById("module")!.textContent!);
    const bytes = Uint8Array.from(text, (byte) => byte.charCodeAt(0));
    const plain = new Blob([bytes]).stream().pipeThrough<Uint8Array>(new DecompressionStream("gzip"));
    return WebAssembly.compile(await new Response(plain).arrayBuffer());
  })();
  return compiled;
}

export class Engine {
  private worker: Worker | undefined;
  private waiting = new Map<number, Waiting>();
  private next = 0;

  /** Asks; the engine reads `files`, which the request names in this order. */
  async ask<T>(ask: object, files?: Blob[], progress?: Progress): Promise<T> {
    const worker = await this.started();
    return this.send<T>(worker, (id) => ({ id, ask, files }), progress);
  }

  /** Ends what is being done; the next request starts anew. */
  stop(why: Error = new Stopped("stopped")): void {
    this.worker?.terminate();
    this.worker = undefined;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    waiting.forEach((it) => it.reject(why));
  }

  private async started(): Promise<Worker> {
    const wasm = await module();
    if (this.worker) return this.worker;
    const script = document.getElementById("worker")!.textContent!;
    const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    const worker = new Worker(url);
    URL.revokeObjectURL(url);
    worker.onmessage = (event) => this.take(event.data as Reply);
    worker.onerror = (event) => this.stop(new Error(event.message || "the worker has ended"));
    this.worker = worker;
    await this.send(worker, (id) => ({ id, module: wasm }));
    return worker;
  }

  private send<T>(worker: Worker, of: (id: number) => Message, progress?: Progress): Promise<T> {
    const id = this.next++;
    return new Promise<T>((resolve, reject) => {
      this.waiting.set(id, { resolve, reject, progress });
      worker.postMessage(of(id));
    });
  }

  private take(reply: Reply): void {
    const waiting = this.waiting.get(reply.id);
    if (!waiting) return;
    if ("done" in reply) {
      waiting.progress?.(reply.done, reply.of);
      return;
    }
    this.waiting.delete(reply.id);
    if ("ok" in reply) {
      waiting.resolve(reply.ok as never);
    } else {
      waiting.reject(new Error(reply.error));
      if (reply.isBroken) this.stop();
    }
  }
}
