// A small client whose types come from the daemon's own document, and the scenario of tests/clients played with it.
//   dwell schema | node types.mjs > dwell.d.ts && tsc --strict --module nodenext client.ts && DWELL_SOCKET=... node client.js
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createConnection, type Socket } from "node:net";
import type { Event, Fault, Methods, Notifications } from "./dwell.js";

type Method = keyof Methods;
type Notification = keyof Notifications;
type Message = { id?: number; method?: Notification; params?: unknown; result?: unknown; error?: Fault };

/** An error of the daemon: branch on `data.kind`. */
class Refused extends Error {
  constructor(readonly fault: Fault) {
    super(fault.message);
  }
}

class Client {
  #socket: Socket;
  #waiting = new Map<number, { done: (result: never) => void; failed: (error: Error) => void }>();
  #listeners = new Map<string, (params: never) => void>();
  #partial = "";

  constructor(path: string) {
    this.#socket = createConnection(path).setEncoding("utf8");
    this.#socket.on("data", (text: string) => {
      const lines = (this.#partial + text).split("\n");
      this.#partial = lines.pop() ?? "";
      lines.filter((line) => line !== "").forEach((line) => this.#read(JSON.parse(line)));
    });
  }

  call<M extends Method>(method: M, params: Methods[M]["params"]): Promise<Methods[M]["result"]> {
    const id = this.#waiting.size === 0 ? 1 : Math.max(...this.#waiting.keys()) + 1;
    this.#socket.write(JSON.stringify({ jsonrpc: "2.0", id, method, params }) + "\n");
    return new Promise((done, failed) => this.#waiting.set(id, { done, failed }));
  }

  on<N extends Notification>(method: N, listener: (params: Notifications[N]) => void): void {
    this.#listeners.set(method, listener);
  }

  close(): void {
    this.#socket.destroy();
  }

  #read({ id, method, params, result, error }: Message): void {
    if (method !== undefined) return this.#listeners.get(method)?.(params as never);
    const waiting = this.#waiting.get(id ?? 0);
    this.#waiting.delete(id ?? 0);
    if (error !== undefined) waiting?.failed(new Refused(error));
    else waiting?.done(result as never);
  }
}

type Kind = Event["type"];

/** Listens to a session's events: the function gives the first of a type that has not been given. */
function listen(client: Client) {
  const events: Event[] = [];
  let wake = () => {};
  client.on("session/event", ({ result }) => {
    if (result !== undefined) events.push(result);
    wake();
  });
  return async <K extends Kind>(kind: K): Promise<Extract<Event, { type: K }>> => {
    for (;;) {
      for (let event = events.shift(); event !== undefined; event = events.shift()) {
        if (event.type === kind) return event as Extract<Event, { type: K }>;
      }
      await new Promise<void>((resolve) => (wake = resolve));
    }
  };
}

const path = process.env["DWELL_SOCKET"] ?? "";
const client = new Client(path);
const next = listen(client);
const hello = await client.call("initialize", { protocol: 1, client: { name: "client.ts", version: "1" } });
assert.equal(hello.protocol, 1);
const { id: session } = await client.call("session/create", { cwd: process.cwd(), provider: "script" });
await client.call("session/attach", { session });

// A turn with a call that has to be allowed.
const script = 'say grün 😀\ndo execute {"command": "echo ran > typed.txt"}\nsay , done';
await client.call("turn/start", { session, text: script });
const asked = await next("approval_asked");
assert.deepEqual(asked.arguments, { command: "echo ran > typed.txt" });
await client.call("approval/answer", { approval: asked.approval, answer: "allow" });
assert.equal((await next("turn_ended")).status, "completed");
const { events } = await client.call("session/history", { session });
const said = events.flatMap((event) => (event.type === "said" ? [event.text] : []));
assert.equal(said.join(""), "grün 😀, done");
assert.equal(readFileSync("typed.txt", "utf8"), "ran\n");

// A tool of the client's own.
client.on("tool_asked", ({ call, name, arguments: given }) => {
  assert.deepEqual([name, given], ["buffer_text", { line: 7 }]);
  void client.call("tool/answer", { call, result: { content: "the seventh line" } });
});
const tools = [{ name: "buffer_text", description: "A line of the open buffer.", params: { line: { type: "integer" } } }];
await client.call("tool/provide", { session, tools });
await client.call("turn/start", { session, text: 'do buffer_text {"line": 7}\nsay read' });
const { approval } = await next("approval_asked");
await client.call("approval/answer", { approval, answer: "allow", scope: "session" });
assert.deepEqual((await next("done")).result, { content: "the seventh line", ok: true });
await next("turn_ended");

// One that is stopped.
await client.call("turn/start", { session, text: "wait 60000" });
await client.call("turn/cancel", { session });
assert.equal((await next("turn_ended")).status, "cancelled");

// Several calls under way at once; an error with what to branch on.
const many = await Promise.all(Array.from({ length: 50 }, () => client.call("session/get", { session })));
assert.ok(many.every(({ id }) => id === session));
const last = many[0]?.seq ?? 0;
await assert.rejects(
  client.call("session/get", { session: "nobody" }),
  (error) => error instanceof Refused && error.fault.data.kind === "not_found",
);

// The connection goes, and whatever happens meanwhile is there afterwards, once.
client.close();
const again = new Client(path);
const nextAgain = listen(again);
const meanwhile = await again.call("turn/start", { session, text: "say meanwhile" });
assert.ok(meanwhile.turn);
await again.call("turn/wait", { turn: meanwhile.turn });
await again.call("session/attach", { session, after: last });
assert.equal((await nextAgain("turn_started")).seq, last + 1);
assert.equal((await nextAgain("said")).text, "meanwhile");

// An answer of more than 5 MB.
const piece = "ü".repeat(4096);
const { turn } = await again.call("turn/start", { session, text: `repeat 640 ${piece}` });
assert.ok(turn);
const { reply } = await again.call("turn/wait", { turn });
assert.ok(reply === piece.repeat(640));

// What the types do not have is no program.
// @ts-expect-error: no such method
void (() => again.call("session/made_up", {}));
// @ts-expect-error: a parameter is missing
void (() => again.call("session/get", {}));
// @ts-expect-error: a member that is not there
void (async () => (await again.call("session/get", { session })).made_up);

again.close();
console.log("scenario passed");
