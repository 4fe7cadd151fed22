/** Uploading files in parts. A part that got lost is sent again; the server says where to go on. */
import { ApiError, ask, get, patch, post, remove, type Schemas } from "./api";

export type Attachment = Schemas["AttachmentOut"];
type Upload = Schemas["FileOut"];

const PART_BYTES = 1024 * 1024;
const TRIES = 5;

/** Uploads that were begun and are not sent yet, by the key that the page gave them. */
const begun = new Map<string, string>();

/**
 * Upload a file; `onProgress` is told what share of it has arrived. One that failed goes on where it stopped, if it is
 * called again with the same key.
 */
export async function upload(file: File, onProgress: (share: number) => void, signal: AbortSignal, key: string): Promise<Attachment> {
  let state = await beginOrContinue(file, signal, key);
  begun.set(key, state.id);
  for (let failed = 0; !state.complete; ) {
    onProgress(state.arrived / state.size);
    try {
      state = await sendPart(state, file.slice(state.arrived, state.arrived + PART_BYTES), signal);
      failed = 0;
    } catch (error) {
      const again = error instanceof ApiError && (error.passing || error.code === "upload_conflict");
      if (!again || signal.aborted || ++failed >= TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** failed));
      const { arrived } = state;
      state = await stateOf(state.id, signal).catch(() => state);
      // What is slow still arrives.
      if (state.arrived > arrived) failed = 0;
    }
  }
  return asAttachment(state);
}

/** Say what an upload shows, for those who cannot see it. */
export async function describe(file: Attachment, alt: string | null): Promise<Attachment> {
  return asAttachment(await patch("/api/files/{file_id}", { path: { file_id: file.id }, body: { alt } }));
}

function asAttachment({ id, name, media_type, size, alt }: Upload): Attachment {
  return { id, name, media_type, size, alt: alt ?? null };
}

async function beginOrContinue(file: File, signal: AbortSignal, key: string): Promise<Upload> {
  const id = begun.get(key);
  if (id !== undefined) return stateOf(id, signal);
  const about = { name: file.name, size: file.size, media_type: file.type || null };
  return (await post("/api/files", { body: about, signal })) as Upload;
}

function stateOf(id: string, signal: AbortSignal): Promise<Upload> {
  return get("/api/files/{file_id}", { path: { file_id: id }, signal });
}

/** Nobody will send it: the server need not keep it. */
export function discard(key: string): void {
  const id = begun.get(key);
  begun.delete(key);
  if (id !== undefined) void remove("/api/files/{file_id}", { path: { file_id: id } }).catch(() => undefined);
}

async function sendPart(state: Upload, part: Blob, signal: AbortSignal): Promise<Upload> {
  const wanted = { path: { file_id: state.id }, query: { offset: state.arrived }, raw: part, signal };
  return (await ask("PUT", "/api/files/{file_id}/content", wanted)) as Upload;
}
