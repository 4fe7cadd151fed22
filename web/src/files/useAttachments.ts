import { useCallback, useEffect, useRef, useState } from "react";
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
  /** They were sent: those that failed stay, with the reason. */
  clear: () => void;
}

/** The files that the next message will have. They are uploaded at once. */
export function useAttachments(): Attachments {
  const [chosen, setChosen] = useState<Chosen[]>([]);
  const stops = useRef(new Map<string, AbortController>());
  const change = useCallback((key: string, changes: Partial<Chosen>): void => {
    setChosen((before) => before.map((each) => (each.key === key ? { ...each, ...changes } : each)));
  }, []);
  const begin = useCallback(
    (key: string, file: File): void => {
      const stop = new AbortController();
      stops.current.set(key, stop);
      upload(file, (share) => change(key, { share }), stop.signal, key)
        .then((done) => change(key, { done, share: 1 }))
        .catch((error: unknown) => {
          if (!stop.signal.aborted) change(key, { error: inWords(error), mayRetry: !(error instanceof ApiError && ["invalid_input", "file_too_large"].includes(error.code)) });
        });
    },
    [change],
  );
  const add = useCallback(
    (files: Iterable<File>): void => {
      for (const file of files) {
        const key = crypto.randomUUID();
        setChosen((before) => [...before, { key, name: file.name, file, share: 0, done: null, error: null, mayRetry: true }]);
        begin(key, file);
      }
    },
    [begin],
  );
  const retry = useCallback(
    ({ key, file }: Chosen): void => {
      change(key, { error: null });
      begin(key, file);
    },
    [begin, change],
  );
  const describe = useCallback(
    async ({ key, done }: Chosen, alt: string | null): Promise<void> => {
      if (done) change(key, { done: await describeUpload(done, alt) });
    },
    [change],
  );
  const remove = useCallback((key: string): void => {
    stops.current.get(key)?.abort();
    discard(key);
    setChosen((before) => before.filter((each) => each.key !== key));
  }, []);
  const clear = useCallback((): void => {
    stops.current.clear();
    setChosen((before) => before.filter((each) => each.error !== null));
  }, []);
  useEffect(() => {
    const open = stops.current;
    return () => open.forEach((stop) => stop.abort());
  }, []);
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
