import { useCallback } from "react";
import { useToast } from "../ui/Toast";
import { fetchApi, inWords } from "./api";

interface Wanted {
  path?: Record<string, string>;
  query?: Record<string, string | undefined>;
}

/** A function that saves what the API gives as a file, and tells why if it cannot. A link could not send the page key. */
export function useDownload(): (path: string, wanted: Wanted, name: string) => void {
  const say = useToast();
  return useCallback(
    (path, wanted, name) => {
      fetchApi("GET", path, wanted)
        .then(async (response) => save(await response.blob(), name))
        .catch((error: unknown) => say(`Not downloaded: ${inWords(error)}`));
    },
    [say],
  );
}

/** Save it in the browser's folder for downloads. */
export function save(content: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
