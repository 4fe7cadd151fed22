/**
 * Server-sent events by `fetch`: `EventSource` cannot send a header. Like that, it connects again by itself when the
 * connection breaks, from the last event that it had, and not when the server has refused.
 */
import { pageKeyHeader } from "./pageKey.ts";
import { base } from "./base.ts";

const AGAIN_MILLISECONDS = 1_000;
/** The server says something every 15 seconds. After so long without a word there is no connection, whatever seems. */
const SILENCE_MILLISECONDS = 45_000;

export interface ServerEvent {
  name: string;
  data: string;
  id: string | null;
}

export interface StreamHandlers {
  onEvent: (event: ServerEvent) => void;
  onOpen?: () => void;
  /** The connection broke. If it was `refused`, nothing more comes. */
  onLost: (refused: boolean) => void;
}

export interface StreamOptions {
  /** Read anew for each connection. */
  headers?: () => Record<string, string>;
  /** The event to resume after. */
  after?: string | null;
}

/** Reads the stream at `path` until the returned function is called. */
export function openStream(
  path: string,
  { onEvent, onOpen, onLost }: StreamHandlers,
  { headers: given = pageKeyHeader, after = null }: StreamOptions = {},
): () => void {
  const controller = new AbortController();
  const { signal } = controller;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let silence: ReturnType<typeof setTimeout> | undefined;
  let lastId: string | null = after;

  const read = async (): Promise<void> => {
    const connection = new AbortController();
    const hear = (): void => {
      clearTimeout(silence);
      silence = setTimeout(() => connection.abort(), SILENCE_MILLISECONDS);
    };
    hear();
    const refused = await readOnce(AbortSignal.any([signal, connection.signal]), hear);
    clearTimeout(silence);
    if (signal.aborted) return;
    onLost(refused);
    // One that fell silent has waited long enough.
    if (!refused) timer = setTimeout(() => void read(), connection.signal.aborted ? 0 : AGAIN_MILLISECONDS);
  };
  /** Reads one connection to its end; whether the server has refused it. */
  const readOnce = async (until: AbortSignal, hear: () => void): Promise<boolean> => {
    const headers: Record<string, string> = { Accept: "text/event-stream", ...given() };
    if (lastId !== null) headers["Last-Event-ID"] = lastId;
    const response = await unlessBroken(fetch(base + path, { headers, signal: until, credentials: "same-origin", cache: "no-store" }));
    if (response === null || signal.aborted) return false;
    if (!response.ok || response.body === null) return true;
    onOpen?.();
    await readAll(response.body.getReader(), hear);
    return false;
  };
  const readAll = async (reader: ReadableStreamDefaultReader<Uint8Array>, hear: () => void): Promise<void> => {
    const decoder = new TextDecoder();
    let buffer = "";
    for (;;) {
      const piece = await unlessBroken(reader.read());
      if (piece === null || piece.done) return;
      hear();
      const { events, rest } = parseEvents(buffer + decoder.decode(piece.value, { stream: true }));
      buffer = rest;
      for (const event of events) {
        if (signal.aborted) return;
        lastId = event.id ?? lastId;
        onEvent(event);
      }
    }
  };

  void read();
  return () => {
    clearTimeout(timer);
    clearTimeout(silence);
    controller.abort();
  };
}

/** What comes of it; null where the connection broke. */
async function unlessBroken<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch {
    return null;
  }
}

/** The events that are whole, and the beginning of the next. Comments and events without data are left out. */
export function parseEvents(text: string): { events: ServerEvent[]; rest: string } {
  const blocks = text.split("\n\n");
  const rest = blocks.pop() ?? "";
  const events: ServerEvent[] = [];
  for (const block of blocks) {
    const event: ServerEvent = { name: "message", data: "", id: null };
    const data: string[] = [];
    for (const line of block.split("\n")) {
      const colon = line.indexOf(":");
      const field = colon === -1 ? line : line.slice(0, colon);
      const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") event.name = value;
      else if (field === "data") data.push(value);
      else if (field === "id") event.id = value;
    }
    if (data.length) events.push({ ...event, data: data.join("\n") });
  }
  return { events, rest };
}
