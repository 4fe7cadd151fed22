import type { ReactNode } from "react";
import { Page } from "../shell/Page";

export default function AdminPage(): ReactNode {
  return (
    <Page title="Administration">
      <p>Nothing is here yet.</p>
    </Page>
  );
}
