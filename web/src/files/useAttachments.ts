import { useSyncExternalStore } from "react";
import { ApiError, inWords } from "../denizen/api";
import { type Attachment, describe as describeUpload, discard, upload } from "../denizen/files";

/** How many files a message may have. */
export const MOST_FILES = 20;

/** A file that was chosen: on its way, arrived or refused. */
export interface Chosen {
  key: string;
  name: string;
  file: File;
  share: number;
  done: Attachment | null;
  error: string | null;
  /** Whether it failed in a way that the same file may not fail again. */
  mayRetry: boolean;
}

export interface Attachments {
  chosen: Chosen[];
  /** Whether a file is still on its way. */
  busy: boolean;
  ready: Attachment[];
  add: (files: Iterable<File>) => void;
  /** Go on with an upload that failed, where it stopped. */
  retry: (chosen: Chosen) => void;
  /** Say what a picture shows. */
  describe: (chosen: Chosen, alt: string | null) => Promise<void>;
  remove: (key: string) => void;
  /** These were sent: those that failed stay, with the reason, and those that were chosen since. */
  clear: (sent: readonly Attachment[]) => void;
}

/** The files chosen for one draft. They are uploaded at once, also while another screen is looked at. */
class DraftFiles {
  #chosen: Chosen[] = [];
  #stops = new Map<string, AbortController>();
  #listeners = new Set<() => void>();

  subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };
  all = (): Chosen[] => this.#chosen;

  add = (files: Iterable<File>): void => {
    for (const file of files) {
      const key = crypto.randomUUID();
      this.#become([...this.#chosen, { key, name: file.name, file, share: 0, done: null, error: null, mayRetry: true }]);
      this.#begin(key, file);
    }
  };
  retry = ({ key, file }: Chosen): void => {
    this.#change(key, { error: null });
    this.#begin(key, file);
  };
  describe = async ({ key, done }: Chosen, alt: string | null): Promise<void> => {
    if (done) this.#change(key, { done: await describeUpload(done, alt) });
  };
  remove = (key: string): void => {
    this.#stops.get(key)?.abort();
    discard(key);
    this.#become(this.#chosen.filter((each) => each.key !== key));
  };
  clear = (sent: readonly Attachment[]): void => {
    const ids = new Set(sent.map((each) => each.id));
    this.#become(this.#chosen.filter((each) => each.done === null || !ids.has(each.done.id)));
  };

  #begin(key: string, file: File): void {
    const stop = new AbortController();
    this.#stops.set(key, stop);
    upload(file, (share) => this.#change(key, { share }), stop.signal, key)
      .then((done) => this.#change(key, { done, share: 1 }))
      .catch((error: unknown) => {
        if (!stop.signal.aborted) this.#change(key, { error: inWords(error), mayRetry: !(error instanceof ApiError && ["invalid_input", "file_too_large"].includes(error.code)) });
      });
  }
  #change(key: string, changes: Partial<Chosen>): void {
    this.#become(this.#chosen.map((each) => (each.key === key ? { ...each, ...changes } : each)));
  }
  #become(chosen: Chosen[]): void {
    this.#chosen = chosen;
    for (const listener of this.#listeners) listener();
  }
}

const byDraft = new Map<string, DraftFiles>();

/** The files that the next message will have, by the name of its draft: like its text, they stay until it is sent. */
export function useAttachments(draft: string): Attachments {
  if (!byDraft.has(draft)) byDraft.set(draft, new DraftFiles());
  const files = byDraft.get(draft)!;
  const chosen = useSyncExternalStore(files.subscribe, files.all);
  const { add, retry, describe, remove, clear } = files;
  const good = chosen.filter((each) => each.error === null);
  return {
    chosen,
    busy: good.some((each) => each.done === null),
    ready: good.flatMap((each) => each.done ?? []),
    add,
    retry,
    describe,
    remove,
    clear,
  };
}
