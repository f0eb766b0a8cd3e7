// What a program finds: `tools`, `search_tools`, `console`, `ToolFailure`. Runs before the program in the same realm,
// and keeps the functions that it needs, so that a program which changes them harms itself alone.
(function (send, log, names, others, limits) {
  "use strict";
  const { create, defineProperty, preventExtensions, hasOwn } = Object;
  const { stringify } = JSON;
  const { apply } = Reflect;
  const bound = (method) => (self, ...given) => apply(method, self, given);
  const then = bound(Promise.prototype.then);
  const wellFormed = bound(String.prototype.toWellFormed);
  const mapGet = bound(Map.prototype.get);
  const mapSet = bound(Map.prototype.set);
  const mapDelete = bound(Map.prototype.delete);
  const weakGet = bound(WeakMap.prototype.get);
  const weakSet = bound(WeakMap.prototype.set);
  const errorText = bound(Error.prototype.toString);
  const [P, E, F, S, TE] = [Promise, Error, Function, String, TypeError];
  const isPromise = (value) => value instanceof P;

  // Where a failure was asked for: errors that the host makes have no stack of their own.
  const asked = new WeakMap();
  class ToolFailure extends E {
    constructor(failure, tool, stack) {
      super(failure.message);
      this.code = failure.code;
      this.tool = failure.tool ?? tool;
      this.retryable = failure.retryable === true;
      this.details = failure.details;
      weakSet(asked, this, stack);
      defineProperty(this, "stack", { value: stack, writable: true, configurable: true });
    }
  }
  defineProperty(ToolFailure.prototype, "name", { value: "ToolFailure", writable: true, configurable: true });

  const open = new Map();
  let made = 0;

  const plain = (key, value) => {
    if (isPromise(value)) throw new TE(`${key === "" ? "it" : `its ${stringify(key)}`} is a promise: add await`);
    return value;
  };
  const call = (name, input) => {
    const stack = new E().stack;
    const failed = (code, message) => P.reject(new ToolFailure({ code, message }, name, stack));
    let text;
    try {
      text = input === undefined ? "{}" : stringify(input, plain);
    } catch (error) {
      return failed("unserialisable", `the input of ${name} cannot be JSON: ${error?.message}`);
    }
    if (text === undefined) return failed("parameters", `the input of ${name} is a function or a symbol, not an object`);
    if (made >= limits.calls) {
      return failed("too_many_calls", `cannot call ${name}: a program may make ${limits.calls} calls`);
    }
    made += 1;
    const id = made;
    const refused = send(id, stringify(wellFormed(name)), text);
    if (refused !== undefined) return failed("parameters", `cannot call ${name}: ${refused}`);
    return new P((resolve, reject) => mapSet(open, id, { name, stack, resolve, reject }));
  };

  const settle = (id, ok, value) => {
    const waiting = mapGet(open, id);
    if (waiting === undefined) return;
    mapDelete(open, id);
    if (ok) waiting.resolve(value);
    else waiting.reject(new ToolFailure(value, waiting.name, waiting.stack));
  };

  // Other names of tools: of each the real one.
  const short = new Map();
  for (let at = 0; at < others.length; at += 2) mapSet(short, others[at], others[at + 1]);
  const known = new Map();
  const own = create(null);
  const makers = (name) => ({ [name]: (input) => call(name, input) })[name];
  let tools;
  let passing = false;
  for (const name of names) {
    const value = makers(name);
    mapSet(known, name, value);
    if (name === "then") {
      // `await tools` asks for `then` and would call the tool. It is given `tools` itself, which looks like no promise
      // for as long as that takes.
      const tool = value;
      const thenable = (input, ...more) => {
        if (typeof input !== "function") return tool(input);
        passing = true;
        try { input(tools); } finally { passing = false; }
      };
      defineProperty(own, name, { get: () => (passing ? undefined : thenable), enumerable: true });
    } else {
      defineProperty(own, name, { value, enumerable: true });
    }
  }
  // With members that cannot be changed this is frozen.
  preventExtensions(own);
  // Names that everybody asks objects for; all others that are no tool's are asked for by mistake.
  const silent = new Set(["then", "toJSON", "constructor", "toString", "valueOf", "prototype"]);
  const isSilent = bound(Set.prototype.has);
  tools = new Proxy(own, {
    get(target, name) {
      if (typeof name !== "string" || hasOwn(target, name)) return target[name];
      const real = mapGet(short, name);
      if (real !== undefined) return mapGet(known, real);
      return isSilent(silent, name) ? undefined : makers(name);
    },
  });

  const show = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof E) return errorText(value);
    try {
      return stringify(value, presented) ?? S(value);
    } catch {
      try { return S(value); } catch { return "[cannot be shown]"; }
    }
  };
  const presented = (key, value) => {
    if (isPromise(value)) return "[promise: add await]";
    if (value instanceof E) return errorText(value);
    return value;
  };
  const print = (...values) => {
    let line = "";
    for (let at = 0; at < values.length; at += 1) line += (at === 0 ? "" : " ") + show(values[at]);
    log(wellFormed(line));
  };
  const global = (name, value) => defineProperty(globalThis, name, { value, writable: true, configurable: true });
  global("tools", tools);
  global("ToolFailure", ToolFailure);
  global("console", { log: print, info: print, warn: print, error: print, debug: print, trace: print });
  const find = mapGet(known, "search_tools");
  if (find !== undefined) {
    global("search_tools", (query) => find(typeof query === "string" ? { query } : query));
  }

  // How the program ended, in plain strings for the host.
  const text = (value) => { try { return wellFormed(S(value)); } catch { return undefined; } };
  const returned = (value) => {
    if (typeof value === "string") return { string: wellFormed(value) };
    try {
      const json = stringify(value, presented);
      return json === undefined ? { nothing: typeof value } : { json };
    } catch (error) {
      return { unserialisable: text(error?.message) ?? "it threw", json: undefined };
    }
  };
  const thrown = (reason) => {
    const stack = (typeof reason === "object" && reason !== null && weakGet(asked, reason)) || undefined;
    if (stack !== undefined) {
      let details;
      try { details = stringify(reason.details); } catch { }
      return {
        tool: text(reason.tool), code: text(reason.code), message: text(reason.message),
        retryable: reason.retryable === true, details, stack,
      };
    }
    if (reason instanceof E) {
      return { error: text(reason.name), message: text(reason.message), stack: text(reason.stack) };
    }
    return { value: show(reason), stack: undefined };
  };
  const start = (main, done, failed) => {
    // Of an async function it is a promise already, which is not looked at for its `then`.
    let promise;
    try { promise = main(); } catch (error) { return failed(thrown(error)); }
    if (!isPromise(promise)) { const value = promise; promise = new P((resolve) => resolve(value)); }
    then(promise, (value) => done(returned(value)), (reason) => failed(thrown(reason)));
  };
  return { settle, start, thrown, source: bound(F.prototype.toString) };
})
