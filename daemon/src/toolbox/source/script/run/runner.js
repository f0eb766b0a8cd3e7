// Calls one function of a module with the JSON object on standard input, and writes what it returns to LLM_OUTPUT.
"use strict";
const fs = require("node:fs");

// Whether the result holds a whole number that is no Number.
let hasLong = false;

function plain(value, seen = []) {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value === "bigint") {
    hasLong = true;
    return value;
  }
  if (typeof value === "undefined") return null;
  if (typeof value === "symbol") return String(value);
  if (typeof value === "function") {
    throw new TypeError("the result holds a function, which cannot be written as JSON");
  }
  if (seen.includes(value)) throw new TypeError("the result holds itself");
  const inside = [...seen, value];
  const each = (item) => plain(item, inside);
  const isBoxed = [String, Number, Boolean, BigInt].some((kind) => value instanceof kind);
  if (isBoxed) return plain(value.valueOf());
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof RegExp || value instanceof URL) return String(value);
  if (value instanceof Error) return { name: value.name, message: value.message };
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return bytes(value);
  if (Array.isArray(value)) return value.map(each);
  if (typeof value.toJSON === "function") return each(value.toJSON());
  if (value instanceof Map) return fromMap(value, each);
  if (value instanceof Set) return [...value].map(each);
  if (typeof value[Symbol.iterator] === "function") return [...value].map(each);
  const members = Object.entries(value).filter(([, item]) => item !== undefined);
  const tag = Object.prototype.toString.call(value).slice(8, -1);
  if (members.length === 0 && tag !== "Object" && tag !== "Arguments" && tag !== "Module") {
    throw new TypeError(`the result holds a ${tag}, which cannot be written as JSON`);
  }
  return Object.fromEntries(members.map(([key, item]) => [key, each(item)]));
}

function fromMap(map, each) {
  const members = new Map();
  for (const [key, item] of map) {
    const name = typeof key === "string" ? key : json(plain(key));
    if (members.has(name)) throw new TypeError(`the result holds a Map with two keys that are both ${JSON.stringify(name)} in JSON`);
    members.set(name, each(item));
  }
  return Object.fromEntries(members);
}

// As JSON, with whole numbers of any length as they are.
function json(value) {
  if (typeof value === "bigint") return String(value);
  if (hasLong && Array.isArray(value)) return `[${value.map(json).join(",")}]`;
  if (!hasLong || value === null || typeof value !== "object") return JSON.stringify(value);
  return `{${Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}:${json(item)}`).join(",")}}`;
}

// The arguments, with the whole numbers that a Number would change as BigInt, which JSON.stringify then takes.
function taken({ arguments: given, whole }) {
  for (const [path, text] of whole) {
    const last = path.pop();
    path.reduce((inner, step) => inner[step], given)[last] = BigInt(text);
  }
  if (whole.length > 0) {
    Object.defineProperty(BigInt.prototype, "toJSON", {
      configurable: true,
      writable: true,
      value() {
        return typeof JSON.rawJSON === "function" ? JSON.rawJSON(String(this)) : String(this);
      },
    });
  }
  return given;
}

function bytes(value) {
  const isBytes = value instanceof ArrayBuffer || value instanceof Uint8Array || value instanceof DataView;
  if (!isBytes) return Array.from(value, (item) => plain(item));
  const buffer = value instanceof ArrayBuffer ? Buffer.from(value) : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const text = buffer.toString("utf8");
  return Buffer.from(text, "utf8").equals(buffer) ? text : buffer.toString("base64");
}

// The older way is the quicker one by far, where a script is written for it.
async function load(file, source) {
  const text = fs.readFileSync(source || file, "utf8");
  const mayBeOld = !file.endsWith(".mjs") && !/^\s*(?:import|export)\b/m.test(text);
  if (mayBeOld) {
    try {
      return source ? compiled(file, text) : require(file);
    } catch (error) {
      // Nothing of it has run then.
      const isNew = error?.code === "ERR_REQUIRE_ESM" || error?.code === "ERR_REQUIRE_ASYNC_MODULE";
      const isUnread = error instanceof SyntaxError && String(error.stack).startsWith(`${file}:`);
      if (!isNew && !isUnread) throw error;
    }
  }
  const { href } = require("node:url").pathToFileURL(file);
  if (source) instead(href, text);
  return import(href);
}

// A text that the file does not say any more, in the file's place.
function compiled(file, text) {
  const Module = require("node:module");
  const module = new Module(file);
  module.filename = file;
  module.paths = Module._nodeModulePaths(require("node:path").dirname(file));
  module._compile(text, file);
  return module.exports;
}

function instead(href, text) {
  const hook = `let kept;
export function initialize(data) { kept = data; }
export function resolve(name, context, next) {
  return name === kept.href ? { url: name, format: "module", shortCircuit: true } : next(name, context);
}
export function load(url, context, next) {
  return url === kept.href ? { format: "module", shortCircuit: true, source: kept.text } : next(url, context);
}`;
  require("node:module").register(`data:text/javascript,${encodeURIComponent(hook)}`, { data: { href, text } });
}

async function main() {
  const [file, name, source] = process.argv.slice(1);
  const given = taken(JSON.parse(fs.readFileSync(0, "utf8")));
  process.argv = [process.argv[0], file];
  const module = await load(file, source);
  const owner = [module, module?.default].find((one) => typeof one?.[name] === "function");
  if (!owner) throw new Error(`${file} exports no function ${name}`);
  let value = await owner[name](given);
  if (typeof value?.[Symbol.asyncIterator] === "function") {
    const all = [];
    for await (const item of value) all.push(item);
    value = all;
  }
  if (value === undefined || value === null) return;
  const text = typeof value === "string" ? value : json(plain(value));
  fs.appendFileSync(process.env.LLM_OUTPUT, text);
}

// What is wrong comes last, where it is looked for, and without our own part of the way there.
function told(error) {
  const lines = String(error?.stack ?? error).split("\n");
  const isFrame = (line) => /^\s+at /.test(line);
  const frames = lines.filter((line) => isFrame(line) && !/\[eval\]|node:internal/.test(line));
  return [...frames, ...lines.filter((line) => !isFrame(line))].join("\n").trimEnd();
}

function fail(error) {
  fs.writeSync(2, `${told(error)}\n`);
  process.exit(1);
}

// Nothing is left that could go on, and it did not end.
process.once("beforeExit", () => fail(`${process.argv[1]} never ended: it waits for a promise that nothing settles`));
process.on("uncaughtException", (error) => {
  if (process.listenerCount("uncaughtException") === 1) fail(error);
});

main().then(() => process.exit(), fail);
