/** Saying something: it is on the screen at once, and in the space when the server has it. */
import { ApiError, inWords, post } from "./api";
import type { Attachment } from "./files";
import { messageId } from "./ids";
import type { Store } from "./live";
import type { Pending } from "./store";

/** Say it under a new key. Without a connection it waits, and is sent by itself; where it is refused, it stays as failed. */
export function send(store: Store, space: string, text: string, replyTo: string | null = null, files: Attachment[] = []): void {
  const pending: Pending = { key: crypto.randomUUID(), space, text, replyTo, files, at: new Date().toISOString(), state: "sending" };
  // What was written before it in this space still waits: it goes first.
  const behind = store.getState().pending.some((each) => each.space === space && each.state === "waiting");
  if (behind) store.dispatch({ type: "send", pending: { ...pending, state: "waiting" } });
  else deliver(store, pending);
}

/** Send what failed again: under the same key, so that it is said once, whatever had become of it. */
export function sendAgain(store: Store, pending: Pending): void {
  deliver(store, { ...pending, state: "sending" });
}

/** Send what waits for a connection, each space in the order in which it was written. */
export function sendWaiting(store: Store): void {
  for (const each of store.getState().pending) if (each.state === "waiting") sendAgain(store, each);
}

const RETRY_MILLISECONDS = 3_000;
let retry: ReturnType<typeof setTimeout> | undefined;

/** The stream is open, and yet a request did not get through: it is tried again before long. */
function retrySoon(store: Store): void {
  clearTimeout(retry);
  retry = setTimeout(() => {
    if (store.getState().connection === "open") sendWaiting(store);
  }, RETRY_MILLISECONDS);
}

const inLine = new Map<string, Promise<void>>();

function deliver(store: Store, pending: Pending): void {
  store.dispatch({ type: "send", pending });
  // One after the other, so that what was said first stands first.
  const before = inLine.get(pending.space) ?? Promise.resolve();
  inLine.set(
    pending.space,
    before.then(() => attempt(store, pending)),
  );
}

async function attempt(store: Store, { key, space, text, replyTo, files = [] }: Pending): Promise<void> {
  // One that was written before it could not be sent: it waits with it, so that the order stays.
  const line = store.getState().pending.filter((each) => each.space === space);
  const place = line.findIndex((each) => each.key === key);
  if (place < 0) return; // another tab has sent it meanwhile
  const before = line.slice(0, place);
  if (before.some((each) => each.state === "waiting")) {
    store.dispatch({ type: "waiting", key });
    return;
  }
  try {
    // By its id the message is known when the stream tells it before the answer comes, or when no answer comes.
    store.dispatch({ type: "named", key, id: await messageId(store.getState().me!.id, key) });
    const message = await post("/api/spaces/{space_id}/messages", {
      path: { space_id: space },
      // The organization has to be named each time: without it, nothing that is remembered for all its people is used.
      body: { text, reply_to: replyTo, urgent: false, organizationId: store.getState().me?.organization.id ?? null, files: files.map((each) => each.id) },
      key,
    });
    store.dispatch({ type: "sent", key, message });
  } catch (error) {
    if (error instanceof ApiError && error.passing) {
      store.dispatch({ type: "waiting", key, error: error.status === 0 ? undefined : inWords(error) });
      retrySoon(store);
      return;
    }
    const gone = error instanceof ApiError && error.status === 404;
    store.dispatch({ type: "unsent", key, error: gone ? "You are no longer in this space." : inWords(error) });
  }
}
