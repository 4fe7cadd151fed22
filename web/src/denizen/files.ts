/** Uploading files in parts. A part that got lost is sent again; the server says where to go on. */
import { ApiError, fetchApi, get, post, remove, type Schemas } from "./api";

export type Attachment = Schemas["AttachmentOut"];
type Upload = Schemas["FileOut"];

const PART_BYTES = 1024 * 1024;
const TRIES = 5;

/** Upload a file; `onProgress` is told what share of it has arrived. */
export async function upload(file: File, onProgress: (share: number) => void, signal: AbortSignal): Promise<Attachment> {
  const about = { name: file.name, size: file.size, media_type: file.type || null };
  let state = (await post("/api/files", { body: about, signal })) as Upload;
  try {
    for (let failed = 0; !state.complete; ) {
      onProgress(state.arrived / state.size);
      try {
        state = await sendPart(state, file.slice(state.arrived, state.arrived + PART_BYTES), signal);
        failed = 0;
      } catch (error) {
        const again = error instanceof ApiError && (error.passing || error.code === "upload_conflict");
        if (!again || ++failed >= TRIES) throw error;
        await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** failed));
        state = await get("/api/files/{file_id}", { path: { file_id: state.id }, signal });
      }
    }
  } catch (error) {
    // Nobody will use what has arrived.
    if (signal.aborted) void remove("/api/files/{file_id}", { path: { file_id: state.id } }).catch(() => undefined);
    throw error;
  }
  return { id: state.id, name: state.name, media_type: state.media_type, size: state.size };
}

async function sendPart(state: Upload, part: Blob, signal: AbortSignal): Promise<Upload> {
  const wanted = { path: { file_id: state.id }, query: { offset: state.arrived }, raw: part, signal };
  return (await (await fetchApi("PUT", "/api/files/{file_id}/content", wanted)).json()) as Upload;
}
