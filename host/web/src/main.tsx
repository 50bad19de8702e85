import { render } from "preact";
import { again } from "./api/again";
import { listen, refreshCaptures } from "./api/live";
import { message } from "./components/load";
import { App } from "./shell/App";
import { note } from "./state/store";
import { applyTheme } from "./theme";
import "./style.css";
import "./packets/packets.css";

applyTheme(document.documentElement);
render(<App />, document.getElementById("app") as HTMLElement);
let failed = false;
again(
    refreshCaptures,
    () => {
        if (failed) note.value = null;
        listen();
    },
    (reason) => {
        failed = true;
        note.value = `${message(reason)} Trying again…`;
    },
);
