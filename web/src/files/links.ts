/** Links to files: pictures, documents and players cannot send the page key. */
import { useQuery } from "@tanstack/react-query";
import { get, inWords } from "../denizen/api";
import type { Attachment } from "../denizen/files";

const LINK_MILLISECONDS = 50 * 60 * 1000;
const PICTURE = /^image\/(png|jpeg|gif|webp|avif)$/;

export function isPicture(file: Attachment): boolean {
  return PICTURE.test(file.media_type);
}

/** Whether the viewer can show it. */
export function isViewable(file: Attachment): boolean {
  return isPicture(file) || file.media_type === "application/pdf";
}

interface FileLink {
  url: string | undefined;
  thumbnail: string | undefined;
  fault: string | null;
}

/** An address of the file, valid for an hour, and asked for again in time. */
export function useFileLink(file: Attachment): FileLink {
  const link = useQuery({
    queryKey: ["file link", file.id],
    queryFn: () => get("/api/files/{file_id}/link", { path: { file_id: file.id } }),
    staleTime: LINK_MILLISECONDS,
    refetchInterval: LINK_MILLISECONDS,
  });
  return { url: link.data?.url, thumbnail: link.data?.thumbnail ?? undefined, fault: link.error ? inWords(link.error) : null };
}
