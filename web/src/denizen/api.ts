/** Requests to the HTTP API, typed by its own description. Errors are `ApiError`: decide by `code`, show `detail`. */
import { pageKeyHeader } from "./pageKey.ts";
import type { components, paths } from "./schema";
import { base } from "./base.ts";

export type Schemas = components["schemas"];
export type Me = Schemas["Me"];
export type Message = Schemas["MessageOut"];
export type Space = Schemas["SpaceOut"];
export type Member = Schemas["MemberOut"];
export type Agent = Schemas["AgentOut"];
export type Call = Schemas["CallOut"];
export type Entity = Schemas["EntityOut"];
export type Panel = Schemas["PanelOut"];
export type Advisor = Schemas["AdvisorOut"];
export type VoiceStance = Schemas["VoiceStanceOut"];
export type Round = Schemas["RoundOut"];
export type Reply = Schemas["ReplyOut"];

type Verb = "get" | "post" | "put" | "patch" | "delete";
/** The paths that answer to a verb. */
export type PathOf<V extends Verb> = {
  [P in keyof paths]: paths[P] extends Record<V, { responses: unknown }> ? P : never;
}[keyof paths];
type Operation<P extends keyof paths, V extends Verb> = V extends keyof paths[P] ? paths[P][V] : never;
type Json<T> = T extends { content: { "application/json": infer Body } } ? Body : undefined;
type Good = 200 | 201 | 202 | 204;
export type Answer<O> = O extends { responses: infer R } ? { [S in keyof R & Good]: Json<R[S]> }[keyof R & Good] : never;
type Part<O, K extends string> = O extends { parameters: infer A } ? (K extends keyof A ? NonNullable<A[K]> : never) : never;
type Body<O> = O extends { requestBody?: infer B } ? Json<NonNullable<B>> : undefined;

type Given<O> = (Part<O, "path"> extends never ? { path?: undefined } : { path: Part<O, "path"> }) & {
  query?: Part<O, "query">;
  body?: Body<O>;
  /** An Idempotency-Key: asking again with it is asking once. */
  key?: string;
  signal?: AbortSignal;
};
type Needed<O> = Part<O, "path"> extends never ? [given?: Given<O>] : [given: Given<O>];

/** What is wrong with one field of a request. */
export interface FieldError {
  in: string;
  field: string;
  message: string;
}

/** Why a request failed, as the server says it; `offline` where it could not be asked. */
export class ApiError extends Error {
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly status: number;
  readonly errors: FieldError[];

  constructor(told: { code: string; title: string; detail: string; status: number; errors?: FieldError[] | null }) {
    super(told.detail);
    this.name = "ApiError";
    this.code = told.code;
    this.title = told.title;
    this.detail = told.detail;
    this.status = told.status;
    this.errors = told.errors ?? [];
  }

  /** Whether the same request may succeed later. */
  get passing(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** Any error in words for people. */
export function inWords(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

let onSignedOut: () => void = () => undefined;

/** `callback` is called whenever the server says that nobody is signed in. */
export function whenSignedOut(callback: () => void): void {
  onSignedOut = callback;
}

export function get<P extends PathOf<"get">>(path: P, ...given: Needed<Operation<P, "get">>): Promise<Answer<Operation<P, "get">>> {
  return ask("GET", path, given[0]) as Promise<Answer<Operation<P, "get">>>;
}

export function post<P extends PathOf<"post">>(path: P, ...given: Needed<Operation<P, "post">>): Promise<Answer<Operation<P, "post">>> {
  return ask("POST", path, given[0]) as Promise<Answer<Operation<P, "post">>>;
}

export function put<P extends PathOf<"put">>(path: P, ...given: Needed<Operation<P, "put">>): Promise<Answer<Operation<P, "put">>> {
  return ask("PUT", path, given[0]) as Promise<Answer<Operation<P, "put">>>;
}

export function patch<P extends PathOf<"patch">>(path: P, ...given: Needed<Operation<P, "patch">>): Promise<Answer<Operation<P, "patch">>> {
  return ask("PATCH", path, given[0]) as Promise<Answer<Operation<P, "patch">>>;
}

export function remove<P extends PathOf<"delete">>(path: P, ...given: Needed<Operation<P, "delete">>): Promise<Answer<Operation<P, "delete">>> {
  return ask("DELETE", path, given[0]) as Promise<Answer<Operation<P, "delete">>>;
}

interface Loose {
  path?: Record<string, string | number> | undefined;
  query?: Record<string, unknown> | undefined;
  body?: unknown;
  key?: string | undefined;
  signal?: AbortSignal | undefined;
  /** Bytes instead of JSON. */
  raw?: Blob | undefined;
}

/** How long an answer is waited for where asking twice does no harm: from a server that hangs, none ever comes. */
const PATIENCE_MILLISECONDS = 60_000;

/** The JSON of the answer; throws `ApiError` if it is a refusal, or if there is none. */
export async function ask(method: string, path: string, given: unknown): Promise<unknown> {
  const { key, raw, signal } = (given ?? {}) as Loose;
  const patience = new AbortController();
  const mayAskTwice = method === "GET" || key !== undefined || raw !== undefined;
  const timer = mayAskTwice ? setTimeout(() => patience.abort(), PATIENCE_MILLISECONDS) : undefined;
  const either = signal ? AbortSignal.any([signal, patience.signal]) : patience.signal;
  try {
    const response = await fetchApi(method, path, { ...(given as Loose), signal: either });
    return response.status === 204 ? undefined : await response.json();
  } catch (error) {
    if (signal?.aborted || error instanceof ApiError) throw error;
    // It did not come in time, or broke off, or is not JSON: something between here and the server has answered.
    throw offline();
  } finally {
    clearTimeout(timer);
  }
}

/** The answer as it came; throws `ApiError` if it is a refusal, or if there is none. */
export async function fetchApi(method: string, path: string, given: unknown): Promise<Response> {
  const { path: parts, query, body, key, signal, raw } = (given ?? {}) as Loose;
  const headers: Record<string, string> = { Accept: "application/json", ...pageKeyHeader() };
  // Bodies are JSON, and a request that changes something has one, however little it says.
  const sent = method === "GET" || method === "DELETE" ? undefined : (raw ?? JSON.stringify(body ?? {}));
  if (sent !== undefined) headers["Content-Type"] = raw ? raw.type || "application/octet-stream" : "application/json";
  if (key !== undefined) headers["Idempotency-Key"] = key;
  let response: Response;
  try {
    response = await fetch(address(path, parts, query), {
      method,
      headers,
      body: sent,
      signal,
      credentials: "same-origin",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw offline();
  }
  if (!response.ok) throw await problem(response, path);
  return response;
}

/** The address with its parts filled in: `/api/spaces/{space_id}`. */
export function address(path: string, parts: Loose["path"] = {}, query: Loose["query"] = {}): string {
  const filled = base + path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(parts[name])));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) search.append(name, String(value));
  }
  return search.size ? `${filled}?${search}` : filled;
}

function offline(): ApiError {
  return new ApiError({
    code: "offline",
    title: "No connection",
    detail: "The server cannot be reached. Check your connection, then try again.",
    status: 0,
  });
}

async function problem(response: Response, path: string): Promise<ApiError> {
  if (response.status === 401 && path !== "/api/session") onSignedOut();
  const told: unknown = await response.json().catch(() => null);
  return new ApiError(isProblem(told) ? told : unexpected(response.status));
}

/** Whether it is an error of our server, and not of a proxy before it. */
function isProblem(told: unknown): told is ConstructorParameters<typeof ApiError>[0] {
  return typeof told === "object" && told !== null && "code" in told && "detail" in told && typeof told.detail === "string";
}

function unexpected(status: number): ConstructorParameters<typeof ApiError>[0] {
  const isTooLarge = status === 413;
  return {
    code: "unexpected",
    title: isTooLarge ? "Too large" : "Unexpected answer from the server",
    detail: isTooLarge ? "This is too large for a proxy between you and the server. Send less at once, or ask an administrator." : `The server sent an unexpected answer (${status}). Try again in a moment.`,
    status,
  };
}
