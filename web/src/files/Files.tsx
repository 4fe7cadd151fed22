import { Download, File as FileIcon, FileText } from "lucide-react";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { useDownload } from "../denizen/download";
import type { Attachment } from "../denizen/files";
import { bytes } from "../ui/amounts";
import css from "./files.module.css";
import { isPicture, isViewable, useFileLink } from "./links";

const Viewer = lazy(() => import("./Viewer"));
const SOUND = /^audio\/(mpeg|mp4|ogg|wav|webm)$/;
const FILM = /^video\/(mp4|webm|ogg)$/;

/** The files of a message. */
export function Files({ files }: { files: readonly Attachment[] }): ReactNode {
  const [viewed, setViewed] = useState<Attachment | null>(null);
  if (files.length === 0) return null;
  const viewable = files.filter(isViewable);
  return (
    <>
      <ul className={css.files} aria-label="Files">
        {files.map((each) => (
          <li key={each.id}>
            <OneFile file={each} onView={() => setViewed(each)} />
          </li>
        ))}
      </ul>
      {viewed && (
        <Suspense fallback={null}>
          <Viewer files={viewable} first={viewable.indexOf(viewed)} onClose={() => setViewed(null)} />
        </Suspense>
      )}
    </>
  );
}

function OneFile({ file, onView }: { file: Attachment; onView: () => void }): ReactNode {
  const { url, thumbnail, fault } = useFileLink(file);
  const [broken, setBroken] = useState(false);
  if (isPicture(file) && !fault && !broken) {
    return (
      <button type="button" className={css.picture} onClick={onView} aria-label={`View ${file.alt || file.name}`}>
        {thumbnail && <img src={thumbnail} alt={file.alt || file.name} loading="lazy" onError={() => setBroken(true)} />}
      </button>
    );
  }
  if (url && SOUND.test(file.media_type)) return <Player file={file} url={url} kind="audio" />;
  if (url && FILM.test(file.media_type)) return <Player file={file} url={url} kind="video" />;
  if (file.media_type === "application/pdf" && url) {
    return (
      <button type="button" className={css.chip} onClick={onView}>
        <About file={file} />
      </button>
    );
  }
  return <Chip file={file} url={url} />;
}

/** Sound or film, with its name: a browser that cannot play it offers at least to save it. */
function Player({ file, url, kind }: { file: Attachment; url: string; kind: "audio" | "video" }): ReactNode {
  const Element = kind;
  return (
    <figure className={css.played}>
      <Element className={css.player} controls preload={kind === "audio" ? "none" : "metadata"} src={url} aria-label={file.name} />
      <figcaption>
        <a href={`${url}?download=true`} download={file.name}>
          {file.name}
        </a>{" "}
        <span className={css.size}>{bytes(file.size)}</span>
      </figcaption>
    </figure>
  );
}

/** A file that is opened or saved, with its name and size. */
function Chip({ file, url }: { file: Attachment; url: string | undefined }): ReactNode {
  const download = useDownload();
  if (url) {
    return (
      <a className={css.chip} href={url} target="_blank" rel="noreferrer">
        <About file={file} />
      </a>
    );
  }
  return (
    <button type="button" className={css.chip} onClick={() => download("/api/files/{file_id}/content", { path: { file_id: file.id } }, file.name)}>
      <About file={file} />
      <Download size={15} aria-hidden />
    </button>
  );
}

function About({ file }: { file: Attachment }): ReactNode {
  const Icon = file.media_type.startsWith("text/") || file.media_type === "application/pdf" ? FileText : FileIcon;
  return (
    <>
      <Icon size={18} aria-hidden />
      <span className={css.name}>{file.name}</span>
      <span className={css.size}>{bytes(file.size)}</span>
    </>
  );
}
