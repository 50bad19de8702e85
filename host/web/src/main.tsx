import { render } from "preact";
import { listen, refreshCaptures } from "./api/live";
import { message } from "./components/load";
import { App } from "./shell/App";
import { captures, note } from "./state/store";
import { applyTheme } from "./theme";
import "./style.css";
import "./packets/packets.css";

applyTheme(document.documentElement);
render(<App />, document.getElementById("app") as HTMLElement);
refreshCaptures().then(listen, (error: unknown) => {
    note.value = message(error);
    captures.value = [];
});
