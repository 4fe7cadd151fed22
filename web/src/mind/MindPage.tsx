import type { ReactNode } from "react";
import { Page } from "../shell/Page";

export default function MindPage({ id }: { id: string }): ReactNode {
  return (
    <Page title="Mind">
      <p>{id}</p>
    </Page>
  );
}
