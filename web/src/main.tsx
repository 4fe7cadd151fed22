import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { App } from "./shell/App";
import { ignoreStrayFiles } from "./shell/strayFiles";
import { applyTheme } from "./shell/theme";
import "./ui/tokens.css";
import "./ui/base.css";

applyTheme();
ignoreStrayFiles();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <App />
  </StrictMode>,
);
