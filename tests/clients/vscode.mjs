// A client with Visual Studio Code's JSON-RPC library, as an extension would be. The daemon's socket is named by
// DWELL_SOCKET. `npm install vscode-jsonrpc`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import net from "node:net";
import { once } from "node:events";
import * as rpc from "vscode-jsonrpc/node";

/** Listens to a session's events: `next(type)` is the first of a type that has not been given. */
function listen(connection) {
  const events = [];
  let wake = () => {};
  connection.onNotification("session/event", ({ result }) => {
    events.push(result);
    wake();
  });
  return async (type) => {
    for (;;) {
      while (events.length > 0) {
        const event = events.shift();
        if (event.type === type) return event;
      }
      await new Promise((resolve) => (wake = resolve));
    }
  };
}

// The transport as a language server's is made.
const path = process.env.DWELL_SOCKET;
const [reader, writer] = rpc.createServerPipeTransport(path);
const connection = rpc.createMessageConnection(reader, writer);
const next = listen(connection);
connection.listen();
const call = (method, params) => connection.sendRequest(method, rpc.ParameterStructures.byName, params);

const hello = await call("initialize", { protocol: 1, client: { name: "vscode.mjs", version: "1" } });
assert.equal(hello.protocol, 1);
const { id: session } = await call("session/create", { cwd: process.cwd(), provider: "script" });
await call("session/attach", { session });

// A turn with a call that has to be allowed.
const script = 'say grün 😀\ndo execute {"command": "echo ran > vscode.txt"}\nsay , done';
await call("turn/start", { session, text: script });
const asked = await next("approval_asked");
assert.deepEqual(asked.arguments, { command: "echo ran > vscode.txt" });
await call("approval/answer", { approval: asked.approval, answer: "allow" });
assert.equal((await next("turn_ended")).status, "completed");
const { events } = await call("session/history", { session });
const said = events.filter(({ type }) => type === "said").map(({ text }) => text);
assert.equal(said.join(""), "grün 😀, done");
assert.equal(readFileSync("vscode.txt", "utf8"), "ran\n");

// A tool of the editor's own, which the model calls and the editor runs.
connection.onNotification("tool_asked", ({ call: asked, name, arguments: { line } }) => {
  assert.equal(name, "buffer_text");
  call("tool/answer", { call: asked, result: { content: `line ${line} of the buffer` } });
});
const bufferText = {
  name: "buffer_text",
  description: "A line of the buffer that is open in the editor, saved or not.",
  params: { line: { type: "integer", description: "Which" } },
  required: ["line"],
};
await call("tool/provide", { session, tools: [bufferText] });
await call("turn/start", { session, text: 'do buffer_text {"line": 7}\nsay read' });
const { approval } = await next("approval_asked");
await call("approval/answer", { approval, answer: "allow" });
assert.deepEqual((await next("done")).result, { content: "line 7 of the buffer", ok: true });
assert.equal((await next("turn_ended")).status, "completed");

// What waits is taken back with a token, as an extension does; what it waited for goes on.
const { turn: waited } = await call("turn/start", { session, text: "wait 60000" });
const source = new rpc.CancellationTokenSource();
const waiting = connection.sendRequest("turn/wait", rpc.ParameterStructures.byName, { turn: waited }, source.token);
setImmediate(() => source.cancel());
await assert.rejects(waiting, (error) => error.code === -32800 && error.data.kind === "withdrawn");
assert.equal((await call("session/get", { session })).state, "running");
await call("turn/cancel", { session });
assert.equal((await next("turn_ended")).status, "cancelled");

// One that is stopped.
await call("turn/start", { session, text: "wait 60000" });
await call("turn/cancel", { session });
assert.equal((await next("turn_ended")).status, "cancelled");

// Several calls under way at once; an error with what to branch on.
const many = await Promise.all(Array.from({ length: 50 }, () => call("session/get", { session })));
assert.ok(many.every(({ id }) => id === session));
await assert.rejects(call("session/get", { session: "nobody" }), (error) => error.data.kind === "not_found");

// The connection goes, and whatever happens meanwhile is there afterwards, once.
const last = many[0].seq;
connection.dispose();
const socket = net.createConnection(path);
await once(socket, "connect");
const again = rpc.createMessageConnection(new rpc.SocketMessageReader(socket), new rpc.SocketMessageWriter(socket));
const nextAgain = listen(again);
again.listen();
const ask = (method, params) => again.sendRequest(method, rpc.ParameterStructures.byName, params);
const meanwhile = await ask("turn/start", { session, text: "say meanwhile" });
await ask("turn/wait", { turn: meanwhile.turn });
await ask("session/attach", { session, after: last });
assert.equal((await nextAgain("turn_started")).seq, last + 1);
assert.equal((await nextAgain("said")).text, "meanwhile");

// An answer of more than 5 MB.
const piece = "ü".repeat(4096);
const { turn } = await ask("turn/start", { session, text: `repeat 640 ${piece}` });
const { reply } = await ask("turn/wait", { turn });
assert.ok(reply === piece.repeat(640));

again.dispose();
socket.destroy();
console.log("scenario passed");
process.exit(0);
