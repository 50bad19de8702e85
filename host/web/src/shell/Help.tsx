import { useEffect, useRef } from "preact/hooks";
import { go } from "../state/store";
import { START, VIEWS } from "../views";
import { helpShown, KEYS } from "./keys";
import { tourShown } from "./Tour";

function showTour(): void {
    helpShown.value = false;
    tourShown.value = true;
    go({ view: START });
}

/** The keyboard map. */
export function Help() {
    const ref = useRef<HTMLDialogElement>(null);
    const shown = helpShown.value;
    useEffect(() => {
        if (shown) ref.current?.showModal();
        else ref.current?.close();
    }, [shown]);
    return (
        <dialog ref={ref} class="help" aria-labelledby="help-title" onClose={() => (helpShown.value = false)}>
            <header>
                <h2 id="help-title">Keys</h2>
                <button type="button" onClick={showTour}>
                    First steps
                </button>
                <button type="button" onClick={() => (helpShown.value = false)}>
                    Close
                </button>
            </header>
            <div class="columns">
                {KEYS.map((group) => (
                    <section key={group.where}>
                        <h3>{group.where}</h3>
                        <dl>
                            {group.keys.map(([key, what]) => (
                                <div key={key}>
                                    <dt>
                                        <kbd>{key}</kbd>
                                    </dt>
                                    <dd>{what}</dd>
                                </div>
                            ))}
                        </dl>
                    </section>
                ))}
                <section>
                    <h3>Views</h3>
                    <dl>
                        {VIEWS.map((view) => (
                            <div key={view.name}>
                                <dt>
                                    <kbd>g</kbd> <kbd>{view.key}</kbd>
                                </dt>
                                <dd>{view.title}</dd>
                            </div>
                        ))}
                    </dl>
                </section>
            </div>
        </dialog>
    );
}
