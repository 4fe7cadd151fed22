import { useQuery } from "@tanstack/react-query";
import { Download, File as FileIcon, FileText } from "lucide-react";
import type { ReactNode } from "react";
import { get } from "../denizen/api";
import { useDownload } from "../denizen/download";
import type { Attachment } from "../denizen/files";
import { bytes } from "../ui/amounts";
import css from "./files.module.css";

const LINK_MILLISECONDS = 50 * 60 * 1000;
const PICTURE = /^image\/(png|jpeg|gif|webp|avif)$/;
const SOUND = /^audio\//;
const FILM = /^video\/(mp4|webm|ogg)$/;

/** The files of a message. */
export function Files({ files }: { files: readonly Attachment[] }): ReactNode {
  if (files.length === 0) return null;
  return (
    <ul className={css.files} aria-label="Files">
      {files.map((each) => (
        <li key={each.id}>
          <OneFile file={each} />
        </li>
      ))}
    </ul>
  );
}

function OneFile({ file }: { file: Attachment }): ReactNode {
  // Pictures and players cannot send the page key: they need a link of their own.
  const link = useQuery({
    queryKey: ["file link", file.id],
    queryFn: () => get("/api/files/{file_id}/link", { path: { file_id: file.id } }),
    staleTime: LINK_MILLISECONDS,
    refetchInterval: LINK_MILLISECONDS,
  });
  const url = link.data?.url;
  if (PICTURE.test(file.media_type) && !link.error) {
    return (
      <a className={css.picture} href={url} target="_blank" rel="noreferrer" aria-label={`Open ${file.name}`}>
        {url && <img src={url} alt={file.name} loading="lazy" />}
      </a>
    );
  }
  if (url && SOUND.test(file.media_type)) return <audio className={css.player} controls preload="none" src={url} aria-label={file.name} />;
  if (url && FILM.test(file.media_type)) return <video className={css.player} controls preload="metadata" src={url} aria-label={file.name} />;
  return <Chip file={file} url={url} />;
}

/** A file that is opened or saved, with its name and size. */
function Chip({ file, url }: { file: Attachment; url: string | undefined }): ReactNode {
  const download = useDownload();
  const icon = file.media_type.startsWith("text/") || file.media_type === "application/pdf" ? <FileText size={18} aria-hidden /> : <FileIcon size={18} aria-hidden />;
  const about = (
    <>
      {icon}
      <span className={css.name}>{file.name}</span>
      <span className={css.size}>{bytes(file.size)}</span>
    </>
  );
  if (url) {
    return (
      <a className={css.chip} href={url} target="_blank" rel="noreferrer">
        {about}
      </a>
    );
  }
  return (
    <button type="button" className={css.chip} onClick={() => download("/api/files/{file_id}/content", { path: { file_id: file.id } }, file.name)}>
      {about}
      <Download size={15} aria-hidden />
    </button>
  );
}
