import { type ReactNode, useEffect } from "react";
import { get } from "../denizen/api";
import { useSpace } from "../denizen/hooks";
import { useStore } from "../denizen/live";
import { Page } from "../shell/Page";
import { Markdown } from "../ui/Markdown";
import { Skeleton } from "../ui/States";

export function SpacePage({ id }: { id: string; at?: number }): ReactNode {
  const space = useSpace(id);
  const store = useStore();
  const known = space !== undefined;
  useEffect(() => {
    if (known) {
      void get("/api/spaces/{space_id}/messages", { path: { space_id: id } }).then(({ messages }) =>
        store.dispatch({ type: "page", space: id, messages }),
      );
    }
  }, [id, store, known]);
  return (
    <Page title={space?.info.name ?? ""}>
      {space?.window ? space.window.map((each) => <Markdown key={each.id} text={each.text} />) : <Skeleton lines={8} />}
    </Page>
  );
}
