/** A file that is dropped where nothing takes files does nothing: otherwise the browser would leave the page to open it. */
export function ignoreStrayFiles(): void {
  const ignore = (event: DragEvent): void => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "none";
  };
  // First of all listeners: what takes files says so after it.
  window.addEventListener("dragover", ignore);
  window.addEventListener("drop", ignore);
}
