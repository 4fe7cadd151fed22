import { useQuery } from "@tanstack/react-query";
import { ChevronLeft, ChevronRight, Download, ExternalLink } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useState } from "react";
import type { Attachment } from "../denizen/files";
import { IconButton } from "../ui/Button";
import { Dialog } from "../ui/Dialog";
import css from "./files.module.css";
import { isPicture, useFileLink } from "./links";

interface Props {
  /** The pictures and documents that can be looked at, one after the other. */
  files: readonly Attachment[];
  first: number;
  onClose: () => void;
}

/** Pictures and PDF over the whole page. The arrow keys go to the next one and back, Escape closes it. */
export default function Viewer({ files, first, onClose }: Props): ReactNode {
  const [at, setAt] = useState(first);
  const file = files[at]!;
  const go = (by: number): void => setAt((before) => Math.min(Math.max(before + by, 0), files.length - 1));
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === "ArrowLeft") go(-1);
    else if (event.key === "ArrowRight") go(1);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog full title={file.name} onClose={onClose}>
      <div className={css.viewer} onKeyDown={onKey}>
        <Shown key={file.id} file={file} />
        <div className={css.viewerFoot}>
          {files.length > 1 && (
            <>
              <IconButton label="Previous" icon={<ChevronLeft size={20} />} disabled={at === 0} onClick={() => go(-1)} />
              <span aria-live="polite">
                {at + 1} of {files.length}
              </span>
              <IconButton label="Next" icon={<ChevronRight size={20} />} disabled={at === files.length - 1} onClick={() => go(1)} />
            </>
          )}
          <Actions file={file} />
        </div>
      </div>
    </Dialog>
  );
}

function Shown({ file }: { file: Attachment }): ReactNode {
  const { url, fault } = useFileLink(file);
  const [broken, setBroken] = useState(false);
  if (fault || broken) return <p className={css.notShown}>{fault ?? "This picture cannot be shown. Download it instead."}</p>;
  if (!url) return <p className={css.notShown}>Loading…</p>;
  if (!isPicture(file)) return <DrawnPages file={file} url={url} />;
  return (
    <figure className={css.largeFigure}>
      <img className={css.large} src={url} alt={file.alt || file.name} onError={() => setBroken(true)} />
      {file.alt && <figcaption aria-hidden>{file.alt}</figcaption>}
    </figure>
  );
}

/** The pages of a PDF, drawn by the server: phones have no viewer, and some browsers show no PDF in a sandbox. */
function DrawnPages({ file, url }: { file: Attachment; url: string }): ReactNode {
  const address = (page: number): string => `${url}?page=${page}`;
  const first = useQuery({ queryKey: ["file pages", url], queryFn: () => countPages(address(1)), retry: false, staleTime: Infinity });
  if (first.isError) return <p className={css.notShown}>This file cannot be shown. Download it instead.</p>;
  if (!first.data) return <p className={css.notShown}>Loading…</p>;
  const pages = Array.from({ length: first.data }, (_, before) => before + 1);
  return (
    <div className={css.drawnPages} tabIndex={0} role="group" aria-label={`Pages of ${file.name}`}>
      {pages.map((page) => (
        <img key={page} src={address(page)} loading="lazy" alt={`Page ${page} of ${first.data}`} />
      ))}
    </div>
  );
}

async function countPages(firstPage: string): Promise<number> {
  const answer = await fetch(firstPage);
  if (!answer.ok) throw new Error("This file cannot be shown.");
  return Number(answer.headers.get("Denizen-Pages"));
}

function Actions({ file }: { file: Attachment }): ReactNode {
  const { url } = useFileLink(file);
  if (!url) return null;
  return (
    <>
      <a className={css.action} href={`${url}?download=true`} download={file.name} data-autofocus="true">
        <Download size={16} aria-hidden /> Download
      </a>
      <a className={css.action} href={url} target="_blank" rel="noreferrer">
        <ExternalLink size={16} aria-hidden /> Open in a new tab
      </a>
    </>
  );
}
