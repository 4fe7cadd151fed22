/**
 * One connection for all tabs of a browser: browsers allow a server few, and a stream holds one for as long as it is
 * open. A shared worker has the connection, and passes on what comes. Where there are no shared workers, each tab has a
 * connection of its own.
 */
import { pageKeyHeader } from "./pageKey.ts";
import { openStream, type ServerEvent, type StreamHandlers } from "./stream.ts";

/**
 * The name of the event that says: another tab was opened, and what is being written is told again from its beginning.
 * Nothing was missed.
 */
export const RESUMED = "resumed";

/** From a tab to the worker. */
export type FromTab =
  /** `lock` is a Web Lock that the tab holds as long as it lives. */
  { type: "join"; path: string; headers: Record<string, string>; lock: string } | { type: "leave" };

/** From the worker to a tab. */
export type ToTab = { type: "open" } | { type: "events"; events: ServerEvent[] } | { type: "lost"; refused: boolean };

/** Like `openStream`, over the connection that all tabs share. */
export function openSharedStream(path: string, handlers: StreamHandlers): () => void {
  if (!("SharedWorker" in globalThis) || !("locks" in navigator)) return openStream(path, handlers);
  const { port } = new SharedWorker(new URL("./streamWorker.ts", import.meta.url), { type: "module", name: "streams" });
  let ended = false;
  port.onmessage = ({ data }: MessageEvent<ToTab>) => {
    if (ended) return;
    if (data.type === "open") handlers.onOpen?.();
    else if (data.type === "lost") handlers.onLost(data.refused);
    else for (const event of data.events) handlers.onEvent(event);
  };
  const lock = `tab ${crypto.randomUUID()}`;
  let release: () => void = () => undefined;
  const closed = new Promise<void>((resolve) => (release = resolve));
  // Held before the worker asks for it: when the worker gets it, this tab is gone.
  void navigator.locks.request(lock, () => {
    const join: FromTab = { type: "join", path, headers: pageKeyHeader(), lock };
    if (!ended) port.postMessage(join);
    return closed;
  });
  return () => {
    ended = true;
    const leave: FromTab = { type: "leave" };
    port.postMessage(leave);
    port.close();
    release();
  };
}
