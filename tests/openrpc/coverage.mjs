// Calls every method of the daemon at DWELL_SOCKET as the examples of its own document do, and holds what comes back against the
// document's schemas, with that project's own tool. `npm install @open-rpc/test-coverage`.
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import net from "node:net";
import testCoverage from "@open-rpc/test-coverage";

/** A connection: `call` gives the whole answer, `told` waits for a notification that fits. */
function connect(path) {
  const socket = net.createConnection(path).setEncoding("utf8");
  const waiting = new Map();
  let [last, partial, seen, wake] = [0, "", [], () => {}];
  socket.on("data", (text) => {
    const lines = (partial + text).split("\n");
    partial = lines.pop();
    for (const message of lines.filter(Boolean).map((line) => JSON.parse(line))) {
      if (message.method) seen.push(message);
      else waiting.get(message.id)(message);
    }
    wake();
  });
  const call = (method, params) =>
    new Promise((answered) => {
      waiting.set(++last, answered);
      socket.write(JSON.stringify({ jsonrpc: "2.0", id: last, method, params }) + "\n");
    });
  const told = async (fits) => {
    for (;;) {
      const at = seen.findIndex(fits);
      if (at >= 0) return seen.splice(at, 1)[0].params;
      await new Promise((resolve) => (wake = resolve));
    }
  };
  return { call, told, close: () => socket.destroy() };
}

const wire = connect(process.env.DWELL_SOCKET);
const must = async (method, params) => {
  const { result, error } = await wire.call(method, params);
  assert.equal(error, undefined, `${method}: ${error?.message}`);
  return result;
};

const start = (session, text, queue) => must("turn/start", { session, text, queue });
const event = (session, type) =>
  wire.told(({ params: { result } }) => result?.session === session && result.type === type).then(({ result }) => result);
const asking = async (session, script) => {
  await must("session/attach", { session });
  await start(session, script);
  return (await event(session, "approval_asked")).approval;
};

const played = async (session, text) => must("turn/wait", { turn: (await start(session, text)).turn });

/** What has to be there before a method's example can be followed; by what the example calls it, its real name. */
const prepare = {
  "session/detach": async (session) => ({ s2: await must("session/attach", { session }) }),
  "session/fork": async (session) => (await played(session, "say a"), {}),
  "session/history": async (session) => (await played(session, "say a"), {}),
  "daemon/unwatch": async () => ({ s1: await must("daemon/watch") }),
  "queue/list": async (session) => (await start(session, "wait 60000"), await start(session, "say a", true), {}),
  "queue/remove": async (session) => {
    await start(session, "wait 60000");
    return { q1: (await start(session, "say a", true)).queued };
  },
  "turn/steer": async (session) => (await start(session, "wait 60000"), {}),
  "turn/cancel": async (session) => (await start(session, "wait 60000"), {}),
  "turn/wait": async (session) => ({ "calm-otter-7f3k.t1": (await start(session, "say a")).turn }),
  "approval/list": async (session) => (await asking(session, 'do execute {"command": "true"}'), {}),
  "approval/answer": async (session) => ({
    "calm-otter-7f3k.a1": await asking(session, 'do execute {"command": "true"}'),
  }),
  "tool/answer": async (session, { call }) => {
    await must("tool/provide", { session, tools: [{ name: "buffer_text" }] });
    const approval = await asking(session, "do buffer_text {}");
    await must("approval/answer", { approval, answer: "allow" });
    return { [call]: (await wire.told(({ method }) => method === "tool_asked")).call };
  },
};

/** The names of an example's world, in the place of which the real ones go. */
const rename = (value, names) =>
  Object.entries(names).reduce((text, [old, real]) => text.replaceAll(old, real), JSON.stringify(value));

const document = await must("rpc.discover");
const called = new Set();

async function transport(_url, method, params) {
  called.add(method);
  const described = document.methods.find(({ name }) => name === method);
  const given = Object.fromEntries(params.map((value, at) => [described.params[at].name, value]));
  const { id } = await must("session/create", { cwd: process.cwd(), provider: "script" });
  const names = (await prepare[method]?.(id, given)) ?? {};
  const world = { ...names, "calm-otter-7f3k": id, "brave-heron-2m8q": id, "/home/me/project": process.cwd() };
  // By position, as the tool has them.
  return wire.call(method, JSON.parse(rename(params, world)));
}

// Each schema with all that it refers to, as the tool hands it to its validator by itself.
const definitions = JSON.parse(rename(document.components.schemas, { "#/components/schemas/": "#/definitions/" }));
const methods = document.methods.map((method) => {
  const schema = JSON.parse(rename(method.result.schema, { "#/components/schemas/": "#/definitions/" }));
  return { ...method, result: { ...method.result, schema: { allOf: [schema], definitions } } };
});
const options = { openrpcDocument: { ...document, methods }, reporters: ["empty"], transport };
const run = (more) => testCoverage.default({ ...options, ...more });

mkdirSync(".agents", { recursive: true });
writeFileSync(".agents/permissions.json", "{}");
const ending = ["daemon/shutdown"];
const calls = [...(await run({ skip: ending })), ...(await run({ only: ending }))];
for (const { methodName, valid, reason, requestError } of calls) {
  assert.ok(valid, `${methodName}: ${reason ?? requestError ?? "no answer"}`);
}
assert.deepEqual([...called].sort(), document.methods.map(({ name }) => name).sort());
wire.close();
console.log(`${calls.length} calls of ${called.size} methods: as described`);
