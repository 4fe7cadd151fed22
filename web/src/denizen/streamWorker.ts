/** The shared worker: it holds one stream for all tabs that are signed in alike. */
import { SharedStream } from "./sharing.ts";
import type { FromTab } from "./sharedStream.ts";
import { openStream } from "./stream.ts";

const streams = new Map<string, SharedStream>();

function join(port: MessagePort, { path, headers, lock }: Extract<FromTab, { type: "join" }>): () => void {
  // Another session is another stream: it may be another person's.
  const name = JSON.stringify([path, headers]);
  const stream = streams.get(name) ?? new SharedStream(path, headers, openStream);
  streams.set(name, stream);
  stream.join(port);
  const leave = (): void => {
    stream.leave(port);
    if (stream.isEmpty && streams.get(name) === stream) streams.delete(name);
  };
  // A tab that crashes says nothing, but its lock is free then.
  void navigator.locks.request(lock, leave);
  return leave;
}

(globalThis as unknown as { onconnect: (event: MessageEvent) => void }).onconnect = ({ ports: [port] }) => {
  if (port === undefined) return;
  let leave: () => void = () => undefined;
  port.onmessage = ({ data }: MessageEvent<FromTab>) => {
    leave();
    leave = data.type === "join" ? join(port, data) : () => undefined;
  };
};
