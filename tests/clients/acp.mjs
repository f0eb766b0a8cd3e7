// An editor in a few lines: it starts `dwell acp` (its path is the argument) and drives a session with the Agent Client
// Protocol's own library. `npm install @agentclientprotocol/sdk`.
import * as acp from "@agentclientprotocol/sdk";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";

const agent = spawn(process.argv[2], ["acp", "-p", "script"], { stdio: ["pipe", "pipe", "inherit"] });
const stream = acp.ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));

const updates = [];
const asked = [];
const app = acp
  .client({ name: "example" })
  .onNotification(acp.methods.client.session.update, ({ params }) => {
    updates.push(params.update);
  })
  .onRequest(acp.methods.client.session.requestPermission, ({ params }) => {
    asked.push(params.toolCall.rawInput);
    const yes = params.options.find((option) => option.kind === "allow_once");
    return { outcome: { outcome: "selected", optionId: yes.optionId } };
  });

await app.connectWith(stream, async (context) => {
  const { agent: method } = acp.methods;
  const hello = await context.request(method.initialize, {
    protocolVersion: acp.PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  assert.equal(hello.protocolVersion, 1);

  const { sessionId } = await context.request(method.session.new, { cwd: process.cwd(), mcpServers: [] });
  const prompt = (text) =>
    context.request(method.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  const words = () =>
    updates
      .filter((update) => update.sessionUpdate === "agent_message_chunk")
      .map((update) => update.content.text)
      .join("");

  // A turn with a call that has to be allowed.
  const turn = await prompt('say grün 😀\ndo execute {"command": "echo ran"}\nsay , done');
  assert.equal(turn.stopReason, "end_turn");
  assert.equal(words(), "grün 😀, done");
  assert.deepEqual(asked, [{ command: "echo ran" }]);

  // One that is stopped.
  const long = prompt("wait 60000");
  await context.notify(method.session.cancel, { sessionId });
  assert.equal((await long).stopReason, "cancelled");

  // All of it again, as after a restart of the editor.
  updates.length = 0;
  await context.request(method.session.load, { sessionId, cwd: process.cwd(), mcpServers: [] });
  assert.equal(words(), "grün 😀, done");
  const { sessions } = await context.request(method.session.list, {});
  assert.ok(sessions.some((session) => session.sessionId === sessionId));
});

agent.stdin.end();
console.log("scenario passed");
