// TypeScript types from the document on standard input, written to standard output: `dwell schema | node types.mjs > dwell.d.ts`.
// `Methods` and `Notifications` have what each takes and gives. `npm install json-schema-to-typescript`.
import { readFileSync } from "node:fs";
import { compile } from "json-schema-to-typescript";

const { info, methods, "x-notifications": notifications, components } = JSON.parse(readFileSync(process.argv[2] ?? 0, "utf8"));

/** An object of these members, all of them there unless said otherwise. */
const object = (properties, required = Object.keys(properties)) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});

/** Parameters by their names. */
function byName(params) {
  const required = params.filter((param) => param.required).map(({ name }) => name);
  return object(Object.fromEntries(params.map(({ name, schema }) => [name, schema])), required);
}

const table = (list, entry) => object(Object.fromEntries(list.map((one) => [one.name, entry(one)])));
const about = ({ summary, description }, schema) => ({ ...schema, description: description ?? summary });

const schema = {
  ...object({
    methods: {
      title: "Methods",
      ...table(methods, (method) =>
        about(method, object({ params: byName(method.params), result: method.result.schema })),
      ),
    },
    notifications: {
      title: "Notifications",
      ...table(notifications, (notification) => about(notification, byName(notification.params))),
    },
  }),
  components,
};
const options = {
  additionalProperties: false,
  bannerComment: `// ${info.title} ${info.version}: made from \`dwell schema\`.`,
  unknownAny: true,
};
process.stdout.write(await compile(schema, "Protocol", options));
