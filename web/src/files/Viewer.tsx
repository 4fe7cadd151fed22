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
  if (!isPicture(file) && !navigator.pdfViewerEnabled) {
    return <p className={css.notShown}>This browser cannot show PDF files. Download the file instead.</p>;
  }
  // Not sandboxed here, because browsers show no PDF in a sandbox of ours; the answer has one, without scripts.
  if (!isPicture(file)) return <iframe className={css.pages} src={url} title={file.name} />;
  return (
    <figure className={css.largeFigure}>
      <img className={css.large} src={url} alt={file.alt || file.name} onError={() => setBroken(true)} />
      {file.alt && <figcaption aria-hidden>{file.alt}</figcaption>}
    </figure>
  );
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
