/** What a tool gives when nothing more is known of it: log one to see its members. */
type Result = { ok: true; [key: string]: any };
declare class ToolFailure extends Error {
  code: string; tool: string; retryable: boolean; details?: any;
}
/** Finds tools that are not declared here, with the schemas of their inputs. */
declare function search_tools(query: string): Promise<Result>;
declare const tools: {
  /** Takes nothing */
  nothing(input?: {}): Promise<Result>;
  /** Creates an issue. Ends a comment: *\/ no, it does not. */
  github__create_issue(input: {
    /** In one line *\/ of text */
    title: string;
    /** Default: ["bug"] */
    labels?: string[];
    state?: "open" | "closed" | 3 | null | true;
    /** Who does it */
    assignee?: string | null;
  }): Promise<{ number: number }>;
  "a-b"(input: {
    "x-y": number;
    "2d"?: number;
    "with \"quotes\""?: boolean;
    "größe"?: number;
    __proto__?: "p";
    class?: { a: [1, "b"] };
    undeclared: any;
  }): Promise<Result>;
  /** Unions and intersections */
  unions(input?: {
    one?: string | number;
    many?: (string | null)[];
    both?: { a?: string } & { b?: number };
    maybe?: string | null;
    never?: never;
    whatever?: any;
    odd?: any;
    none?: never;
  }): Promise<string | string[]>;
  /** Records and tuples */
  records(input?: {
    env?: { [key: string]: string };
    open?: { a?: string; [key: string]: any };
    typed?: { a?: string; [key: string]: any };
    pattern?: { [key: string]: number | string };
    pair?: [string, (number | null)];
    rest?: [string?, ...number[]];
    old?: [string?, boolean?, ...any[]];
    matrix?: number[][];
    list?: any[];
  }): Promise<Result>;
  /** References, one of them to itself */
  references(input?: {
    /** A list */
    node?: { value: string; next?: any };
    away?: any;
    slash?: string;
  }): Promise<Result>;
};
