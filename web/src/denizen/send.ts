/** Saying something: it is on the screen at once, and in the space when the server has it. */
import { ApiError, inWords, post } from "./api";
import { messageId } from "./ids";
import type { Store } from "./live";
import type { Pending } from "./store";

/** Say it under a new key; where it could not be sent, it stays as failed, to be sent again. */
export function send(store: Store, space: string, text: string, replyTo: string | null = null): void {
  deliver(store, { key: crypto.randomUUID(), space, text, replyTo, at: new Date().toISOString(), state: "sending" });
}

/** Send what failed again: under the same key, so that it is said once, whatever had become of it. */
export function sendAgain(store: Store, pending: Pending): void {
  deliver(store, { ...pending, state: "sending", error: undefined });
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

async function attempt(store: Store, { key, space, text, replyTo }: Pending): Promise<void> {
  try {
    // By its id the message is known when the stream tells it before the answer comes, or when no answer comes.
    store.dispatch({ type: "named", key, id: await messageId(store.getState().me!.id, key) });
    const message = await post("/api/spaces/{space_id}/messages", {
      path: { space_id: space },
      // The organization has to be named each time: without it, nothing that is remembered for all its people is used.
      body: { text, reply_to: replyTo, urgent: false, organizationId: store.getState().me?.organization.id ?? null },
      key,
    });
    store.dispatch({ type: "sent", key, message });
  } catch (error) {
    const gone = error instanceof ApiError && error.status === 404;
    store.dispatch({ type: "unsent", key, error: gone ? "You are not in this space any more." : inWords(error) });
  }
}
