/**
 * Server-sent events by `fetch`: `EventSource` cannot send a header. Like that, it connects again by itself when the
 * connection breaks, from the last event that it had, and not when the server has refused.
 */
import { pageKeyHeader } from "./pageKey.ts";
import { base } from "./base.ts";

const AGAIN_MILLISECONDS = 1_000;

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
  let lastId: string | null = after;

  const read = async (): Promise<void> => {
    const headers: Record<string, string> = { Accept: "text/event-stream", ...given() };
    if (lastId !== null) headers["Last-Event-ID"] = lastId;
    const response = await unlessBroken(fetch(base + path, { headers, signal, credentials: "same-origin", cache: "no-store" }));
    if (signal.aborted) return;
    if (response !== null && (!response.ok || response.body === null)) {
      onLost(true);
      return;
    }
    if (response?.body) {
      onOpen?.();
      await readAll(response.body.getReader());
      if (signal.aborted) return;
    }
    onLost(false);
    timer = setTimeout(() => void read(), AGAIN_MILLISECONDS);
  };
  const readAll = async (reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> => {
    const decoder = new TextDecoder();
    let buffer = "";
    for (;;) {
      const piece = await unlessBroken(reader.read());
      if (piece === null || piece.done) return;
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
