// Whether a document is one of the OpenRPC form, by that project's own library: what stands on standard input. What the daemon
// sends unasked has the form of methods too. `npm install @open-rpc/schema-utils-js`.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import utils from "@open-rpc/schema-utils-js";

const { validateOpenRPCDocument, dereferenceDocument, defaultResolver } = utils;

/** Stops with what is wrong. */
function valid(document) {
  const verdict = validateOpenRPCDocument(document);
  assert.equal(verdict, true, verdict.message);
}

const text = readFileSync(process.argv[2] ?? 0, "utf8");
const document = JSON.parse(text);
valid(document);
valid({ ...document, methods: document["x-notifications"] });
// A check that cannot fail is none.
assert.throws(() => valid({ ...document, methods: [{ name: "a" }] }), /params/);

// Every reference leads somewhere, in the methods and in the notifications.
const { methods } = await dereferenceDocument(JSON.parse(text), defaultResolver);
assert.equal(methods.length, document.methods.length);
await dereferenceDocument({ ...JSON.parse(text), methods: document["x-notifications"] }, defaultResolver);
console.log(`${methods.length} methods, ${document["x-notifications"].length} notifications: valid`);
