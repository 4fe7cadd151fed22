/**
 * `GET /api/stream` feeds the store, and is opened again whenever it breaks. All tabs share one connection.
 *
 * Events are reduced together, once for each frame that the screen can draw, however many come.
 */
import { createContext, type ReactNode, useContext, useEffect, useState, useSyncExternalStore } from "react";
import { ApiError, get, inWords, type Me, type Space } from "./api";
import { isName, parse, type StreamEvent } from "./events";
import { adopt, keep, kept } from "./outbox";
import { sendWaiting } from "./send";
import { openSharedStream, RESUMED } from "./sharedStream";
import { type Action, EMPTY, reduce, type State } from "./store";

const TEXT_MILLISECONDS = 60;

/** The state and who wants to know of it. */
export class Store {
  #state: State = EMPTY;
  #listeners = new Set<() => void>();
  #hearers = new Set<(event: StreamEvent) => void>();
  #queue: Action[] = [];
  #scheduled: "soon" | "now" | null = null;

  getState = (): State => this.#state;

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Calls the listener with each event that happens from now on, until the returned function is called. */
  onEvent = (hear: (event: StreamEvent) => void): (() => void) => {
    this.#hearers.add(hear);
    return () => this.#hearers.delete(hear);
  };

  tell = (event: StreamEvent): void => {
    for (const hear of this.#hearers) hear(event);
  };

  /** At once, and after everything that is queued. */
  dispatch = (action: Action): void => {
    this.#queue.push(action);
    this.flush();
  };

  /** With the next frame; text that grows, a few frames later: nobody reads faster, and the frames between are free. */
  enqueue = (action: Action): void => {
    this.#queue.push(action);
    const grows = action.type === "stream.delta" || action.type === "call.delta" || action.type === "panel.delta";
    if (this.#scheduled === "now" || (this.#scheduled === "soon" && grows)) return;
    this.#scheduled = grows ? "soon" : "now";
    // Pages in the background are given no frames.
    if (grows || document.hidden) setTimeout(this.flush, TEXT_MILLISECONDS);
    else requestAnimationFrame(this.flush);
  };

  flush = (): void => {
    this.#scheduled = null;
    const queue = this.#queue;
    if (queue.length === 0) return;
    this.#queue = [];
    const before = this.#state;
    this.#state = queue.reduce(reduce, before);
    if (this.#state !== before) for (const listener of this.#listeners) listener();
  };
}

const StoreContext = createContext<Store | null>(null);

export function useStore(): Store {
  const store = useContext(StoreContext);
  if (store === null) throw new Error("useStore is for what stands inside <Live>.");
  return store;
}

/** A part of the state; the component is drawn again when that part is another. `select` must not make new objects. */
export function useLive<T>(select: (state: State) => T): T {
  const store = useStore();
  return useSyncExternalStore(store.subscribe, () => select(store.getState()));
}

/** What stands inside is told everything that `me` may see, as it happens. */
export function Live({ me, children }: { me: Me; children: ReactNode }): ReactNode {
  const [store] = useState(() => {
    const fresh = new Store();
    fresh.dispatch({ type: "me", me });
    for (const pending of kept(me.id)) fresh.dispatch({ type: "send", pending });
    return fresh;
  });
  useEffect(() => connect(store), [store]);
  useEffect(() => keep(store, me.id), [store, me.id]);
  return <StoreContext value={store}>{children}</StoreContext>;
}

/** Every space the person is in. */
export async function allSpaces(): Promise<Space[]> {
  const spaces: Space[] = [];
  for (let after = ""; ; ) {
    const page = await get("/api/spaces", { query: { after, limit: 200 } });
    spaces.push(...page.spaces);
    if (page.next === null) return spaces;
    after = page.next;
  }
}

const LONGEST_WAIT = 15_000;
const LOOK_AGAIN_MILLISECONDS = 3_000;

/** Be connected until the returned function is called. */
export function connect(store: Store): () => void {
  let close: () => void = () => undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let lookingAgain: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let ended = false;
  let isReady = false;

  const open = (): void => {
    clearTimeout(timer);
    close();
    isReady = false;
    close = openSharedStream("/api/stream", {
      onEvent: ({ name, data }) => {
        if (name === RESUMED) store.enqueue({ type: "resumed" });
        if (!isName(name)) return;
        const told = parse(name, data);
        store.enqueue(told);
        if (isReady) store.tell(told);
        if (told.type === "ready") {
          failures = 0;
          isReady = true;
          void look();
          adopt(store, store.getState().me!.id);
          sendWaiting(store);
        }
        // What the event does not tell: who is in the space, and how far it was read. Before `ready`, all are looked at.
        if (isReady && (told.type === "space.changed" || told.type === "space.joined")) void lookAt(told.space);
      },
      onLost: (refused) => {
        isReady = false;
        store.dispatch({ type: "connection", connection: "lost" });
        if (refused) again();
      },
    });
  };
  const again = (): void => {
    if (ended) return;
    failures += 1;
    clearTimeout(timer);
    timer = setTimeout(() => void probe(), Math.min(500 * 2 ** failures, LONGEST_WAIT) * (0.7 + 0.6 * Math.random()));
  };
  const probe = async (): Promise<void> => {
    try {
      await get("/api/me"); // says by its status whether we are signed in at all
    } catch {
      if (!ended) again();
      return;
    }
    if (!ended) open();
  };
  const look = async (): Promise<void> => {
    clearTimeout(lookingAgain);
    try {
      store.dispatch({ type: "spaces", spaces: await allSpaces() });
      const { agents } = await get("/api/agents", { query: { limit: 200 } });
      store.dispatch({ type: "presences", agents });
      store.dispatch({ type: "trouble", trouble: null });
    } catch (error) {
      // Without a connection the stream breaks as well, and `ready` comes again. It may be only this that failed.
      if (!isReady) return;
      store.dispatch({ type: "trouble", trouble: inWords(error) });
      lookAgain();
    }
  };
  const lookAgain = (): void => {
    clearTimeout(lookingAgain);
    lookingAgain = setTimeout(() => void look(), LOOK_AGAIN_MILLISECONDS);
  };
  const lookAt = async (id: string): Promise<void> => {
    try {
      store.dispatch({ type: "space", space: await get("/api/spaces/{space_id}", { path: { space_id: id } }) });
    } catch (error) {
      // Left meanwhile: `space.left` says so. Otherwise it is not known yet who is in it.
      if (isReady && error instanceof ApiError && error.passing) lookAgain();
    }
  };
  const gone = (): void => {
    clearTimeout(timer);
    isReady = false;
    close();
    store.dispatch({ type: "connection", connection: "lost" });
  };
  const back = (): void => {
    if (store.getState().connection !== "open") {
      failures = 0;
      open();
    }
  };

  open();
  void look(); // without waiting for the stream, so that there is something to see
  window.addEventListener("offline", gone);
  window.addEventListener("online", back);
  return () => {
    ended = true;
    isReady = false;
    clearTimeout(timer);
    clearTimeout(lookingAgain);
    close();
    window.removeEventListener("offline", gone);
    window.removeEventListener("online", back);
  };
}
