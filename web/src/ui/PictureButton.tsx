import { useMutation, useQueryClient } from "@tanstack/react-query";
import { ImagePlus, Trash2 } from "lucide-react";
import { type ReactNode, useContext, useRef } from "react";
import { fetchApi, inWords, remove } from "../denizen/api";
import { Pictures } from "./Avatar";
import { Button } from "./Button";
import { useToast } from "./Toast";

const TYPES = "image/jpeg,image/png,image/gif,image/webp,image/avif";

/** Chooses or removes the picture of somebody: one's own, or an agent's. */
export function PictureButton({ id }: { id: string }): ReactNode {
  const client = useQueryClient();
  const toast = useToast();
  const input = useRef<HTMLInputElement>(null);
  const has = id in useContext(Pictures);
  const after = async (text: string): Promise<void> => {
    await client.invalidateQueries({ queryKey: ["pictures"] });
    toast(text);
  };
  const path = { entity_id: id };
  const set = useMutation({
    mutationFn: (file: File) => fetchApi("PUT", "/api/entities/{entity_id}/picture", { path, raw: file }),
    onSuccess: () => after("Picture changed."),
    onError: (error) => toast(inWords(error)),
  });
  const drop = useMutation({
    mutationFn: () => remove("/api/entities/{entity_id}/picture", { path }),
    onSuccess: () => after("Picture removed."),
    onError: (error) => toast(inWords(error)),
  });
  return (
    <>
      <input
        ref={input}
        type="file"
        accept={TYPES}
        hidden
        aria-label="Choose a picture"
        onChange={(event) => {
          const file = event.target.files?.[0];
          event.target.value = "";
          if (file) set.mutate(file);
        }}
      />
      <Button small icon={<ImagePlus size={14} />} busy={set.isPending} onClick={() => input.current!.click()}>
        {has ? "Change picture" : "Add picture"}
      </Button>
      {has && (
        <Button small variant="quiet" icon={<Trash2 size={14} />} busy={drop.isPending} onClick={() => drop.mutate()}>
          Remove picture
        </Button>
      )}
    </>
  );
}
