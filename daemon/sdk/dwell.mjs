// Write a dwell plugin in JavaScript: `import { setup } from "dwell"`, give it a setup block, and that is all.
//
// A plugin may run as `node dwell.mjs PLUGIN` (what dwell does with a `.mjs` file), or be an executable that imports this
// file from the folder in DWELL_SDK and ends with `serve()`. `console.log` goes to the session; what should go to the
// daemon's log is written with `console.error`.

import { AsyncLocalStorage } from "node:async_hooks";
import { writeSync } from "node:fs";
import * as modules from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";
import { format } from "node:util";
import { isMainThread } from "node:worker_threads";

const scope = new AsyncLocalStorage();
const [setups, tools, hooks, commands, providers, instances] = [[], ...Array.from({ length: 5 }, () => new Map())];
const waiting = new Map();
let number = 0;
let serving = false;

/** Calls `block(session)` when the plugin is set up. */
export const setup = (block) => void setups.push(block);

/** Registers a provider: the factory takes `{model, env}` and returns an object with `fetch(messages, tools, emit)`. */
export function provider(name, factory) {
  providers.set(String(name), factory);
  changed();
}

/** Calls any method of the daemon; resolves to its result. */
export function call(method, params = {}) {
  if (!serving) return Promise.reject(new Error("nothing can be called before the setup block"));
  const id = ++number;
  return new Promise((resolve, reject) => {
    waiting.set(id, { resolve, reject });
    send({ id, method, params });
  });
}

/** The session that the running handler was called for; in the setup block the one that needed the plugin first. */
export const session = {
  get id() {
    return scope.getStore()?.session ?? null;
  },
  toolbox: {
    /** `add(name, {description, params, required, aliases}, handler)`; the handler takes the arguments, returns an object. */
    add(name, about, handler) {
      const { description = "", params = {}, required = [], aliases = [] } = about;
      tools.set(name, { info: { name, description, params, required, aliases }, handler });
      changed();
    },
    /** `before([tool], (args, {toolName}) => ...)`; throwing stops the call. */
    before: (...given) => hook("before", given),
    /** `after([tool], (args, result, {toolName}) => ...)`. */
    after: (...given) => hook("after", given),
    /** Runs a tool through the gate; resolves to its result, a failure too. */
    run: (name, args = {}) =>
      call("tool/run", { session: session.id, name, arguments: args, call: scope.getStore()?.call ?? null }),
  },
  commands: {
    /** `register(name, {description, completions}, handler)`; the handler takes the rest of the line, or null. */
    register(name, about, handler) {
      const { description = "", completions } = about;
      const fixed = completions === undefined ? [] : Array.isArray(completions) ? completions : null;
      commands.set(name, { info: { name, description, completions: fixed }, handler, completions });
      changed();
    },
  },
  output: {
    /** Shows text to everybody who looks at the session. */
    say: (text) => call("session/say", { session: session.id, text: String(text) }),
  },
  /** Runs a turn to its end; resolves to the model's reply. */
  async turn(text) {
    const { turn } = await call("turn/start", { session: session.id, text });
    return (await call("turn/wait", { turn })).reply;
  },
  /** Makes these messages the conversation. */
  replace: (messages) => call("session/replace", { session: session.id, messages }),
  clear: () => call("session/clear", { session: session.id }),
  /** Events of the session's log. */
  history: async (page = {}) => (await call("session/history", { session: session.id, ...page })).events,
  /** Another provider for the session. */
  switch: (name, model) => call("provider/switch", { session: session.id, name, model }),
};

/** Speaks with the daemon until it has no more to say. */
export function serve() {
  if (serving) return;
  serving = true;
  // What nobody awaits, such as `session.output.say`, may fail without ending the plugin and its hooks.
  process.on("unhandledRejection", (error) => console.error(error));
  const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
  lines.on("line", (line) => take(JSON.parse(line)));
  lines.on("close", () => process.exit(0));
}

function take(message) {
  if (message.method === undefined) {
    const { resolve, reject } = waiting.get(message.id) ?? {};
    waiting.delete(message.id);
    if (message.error) reject?.(Object.assign(new Error(message.error.message), message.error));
    else resolve?.(message.result);
  } else if (message.id !== undefined) {
    const { session = null, call = null } = message.params ?? {};
    scope.run({ session, call, id: message.id }, () => answer(message));
  } else if (message.method === "provider/release") {
    instances.delete(message.params.instance);
  }
}

async function answer({ id, method, params = {} }) {
  let reply;
  try {
    if (!methods[method]) throw Object.assign(new Error(`there is no method ${method} here`), { code: -32601 });
    reply = JSON.stringify({ id, result: (await methods[method](params)) ?? null });
  } catch (error) {
    // Refusing is what hooks are for.
    if (method === "plugin/hook") console.error(`${params.id}: ${error?.message ?? error}`);
    else if (error?.code === undefined) console.error(error);
    const code = Number.isInteger(error?.code) ? error.code : -32000;
    reply = JSON.stringify({ id, error: { code, message: String(error?.message ?? error) } });
  }
  write(reply);
}

const methods = {
  async "plugin/setup"() {
    [tools, hooks, commands].forEach((registry) => registry.clear());
    for (const block of setups) await block(session);
    return what();
  },
  "plugin/tool": ({ name, arguments: args }) => tools.get(name).handler(args),
  async "plugin/hook"({ id, point, tool, arguments: args, result }) {
    const given = point === "after" ? [args, result ?? {}] : [args];
    await hooks.get(id).block(...given, { toolName: tool });
  },
  async "plugin/command"({ name, arguments: args = null }) {
    const output = await commands.get(name).handler(args);
    return typeof output === "string" ? { output } : null;
  },
  async "plugin/complete"({ name, partial }) {
    const { completions } = commands.get(name);
    const words = typeof completions === "function" ? await completions() : (completions ?? []);
    return words.map(String).filter((word) => word.startsWith(partial));
  },
  async "provider/build"({ name, model, env }) {
    const built = await providers.get(name)({ model, env });
    const instance = String(++number);
    instances.set(instance, built);
    return { instance, model: built.model ?? model, window: built.window };
  },
  async "provider/fetch"({ instance, messages, tools: shown }) {
    const fetch = scope.getStore().id;
    const emit = (type, event) => send({ method: "provider/event", params: { fetch, type, ...event } });
    await instances.get(instance).fetch(messages, shown, emit);
  },
  async "provider/models"({ instance }) {
    const models = (await instances.get(instance).models?.()) ?? [];
    return models.map((one) => (typeof one === "string" ? { name: one } : one));
  },
};

function what() {
  return {
    tools: [...tools.values()].map(({ info }) => info),
    hooks: [...hooks].map(([id, { point, tool }]) => ({ id, point, tool })),
    commands: [...commands.values()].map(({ info }) => info),
    providers: [...providers.keys()].map((name) => ({ name })),
  };
}

function hook(point, given) {
  const block = given.pop();
  hooks.set(`${hooks.size + 1}-${block.name || "hook"}`, { point, tool: given[0] ?? null, block });
  changed();
}

// What is registered outside the setup block is told as it comes.
function changed() {
  if (serving && !scope.getStore()) send({ method: "plugin/update", params: what() });
}

const send = (message) => write(JSON.stringify(message));

// The pipe may be full for a moment, and a line must never be cut.
function write(text) {
  const line = Buffer.from(`${text}\n`);
  for (let at = 0; at < line.length; ) {
    try {
      at += writeSync(1, line, at);
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

function printed(...given) {
  const text = format(...given);
  if (session.id) send({ method: "session/say", params: { session: session.id, text } });
  else console.error(text);
}

/** For the thread that resolves imports, in a Node that has one: `dwell` is this file. */
export const resolve = (specifier, context, next) =>
  specifier === "dwell" ? { url: import.meta.url, shortCircuit: true } : next(specifier, context);

if (isMainThread) {
  console.log = console.info = console.debug = printed;
  process.stdout.write = (text) => (printed(String(text).replace(/\n$/, "")), true);
  const [, main, plugin] = process.argv;
  if (plugin && pathToFileURL(main).href === import.meta.url) {
    if (modules.registerHooks) modules.registerHooks({ resolve });
    else modules.register(import.meta.url);
    process.argv.splice(1, 1);
    // Not awaited here: the plugin imports this file, which has to be whole by then.
    import(pathToFileURL(plugin).href).then(serve, (error) => {
      console.error(error);
      process.exit(1);
    });
  }
}
