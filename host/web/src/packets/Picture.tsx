/** A picture without axes: title, how to read it, PNG and SVG. Charts with axes have ChartFrame. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { fit } from "../chart/ChartFrame";
import { save } from "../chart/export";
import { CanvasPainter, SvgPainter, type Painter } from "../chart/painter";
import { capture } from "../state/store";
import { colors } from "../theme";

interface Props {
    name: string;
    title: string;
    about: string;
    /** What the picture says, in words, for who does not see it. */
    words: string;
    height(width: number): number;
    /** Width that its words need, px: in a narrower page it is moved from side to side. */
    least: number;
    paint(painter: Painter, width: number): void;
    children?: ComponentChildren;
}

/** Height of the title in exported pictures, px. */
const HEAD = 34;

export function Picture(props: Props) {
    const box = useRef<HTMLDivElement>(null);
    const canvas = useRef<HTMLCanvasElement>(null);
    const [room, setRoom] = useState(0);
    const width = Math.max(room, props.least);
    const title = useId();
    const palette = colors.value;
    const height = props.height(width);
    useEffect(() => {
        if (!box.current) return;
        const watch = new ResizeObserver(([entry]) => entry && setRoom(Math.floor(entry.contentRect.width)));
        watch.observe(box.current);
        return () => watch.disconnect();
    }, []);
    useLayoutEffect(() => {
        if (!canvas.current || room === 0) return;
        const context = fit(canvas.current, width, height);
        if (context) props.paint(new CanvasPainter(context), width);
    });
    const exportAs = (kind: "png" | "svg") => {
        const file = `${capture.value?.name ?? "weir"}-${props.name}`.replace(/[^\w.-]+/g, "_");
        const head = (painter: Painter) => {
            painter.rect(0, 0, width, height + HEAD, palette.panel);
            painter.text(props.title, 12, 18, { color: palette.text, size: 15, bold: true });
        };
        if (kind === "svg") {
            const painter = new SvgPainter();
            head(painter);
            painter.shift(0, HEAD, () => props.paint(painter, width));
            save(
                `${file}.svg`,
                new Blob([painter.finish(width, height + HEAD, props.title)], { type: "image/svg+xml" }),
            );
            return;
        }
        const picture = document.createElement("canvas");
        const context = fit(picture, width, height + HEAD, 2);
        if (!context) return;
        head(new CanvasPainter(context));
        context.translate(0, HEAD);
        props.paint(new CanvasPainter(context), width);
        picture.toBlob((blob) => blob && save(`${file}.png`, blob), "image/png");
    };
    return (
        <section class="chart" aria-labelledby={title} data-chart={props.name}>
            <header>
                <h2 id={title}>{props.title}</h2>
                <div class="tools">
                    <button type="button" title="Save this picture as PNG" onClick={() => exportAs("png")}>
                        PNG
                    </button>
                    <button type="button" title="Save this picture as SVG" onClick={() => exportAs("svg")}>
                        SVG
                    </button>
                </div>
            </header>
            <p class="about">{props.about}</p>
            <div
                ref={box}
                class="broad"
                role="img"
                aria-label={props.words}
                tabIndex={width > room ? 0 : undefined}
                style={{ minHeight: `${height}px` }}
            >
                <canvas ref={canvas} aria-hidden="true" />
            </div>
            {props.children}
        </section>
    );
}
