/**
 * Draws marks with WebGL2: they are uploaded once, and a frame only sets where the view is, so that moving it costs the
 * main thread next to nothing however many there are.
 */

import { KINDS, type Kind } from "./kinds";
import type { Area } from "../chart/axes";
import { CLIENT_LINE, rise, SERVER_LINE, share, symbols } from "./lanes";
import { type Marks } from "./marks";

/** A colour, each part 0 to 1. */
export type Colour = readonly [red: number, green: number, blue: number];

/** Numbers a mark takes in the buffer: seconds since the origin, row, height, opacity. */
const STRIDE = 4;

const VERTEX = `#version 300 es
in vec3 corner;
in vec4 mark;
uniform vec2 plane;    // px
uniform vec2 across;   // s at the left edge, px a second
uniform float down;    // height of a lane, px
uniform vec2 size;     // of symbols, and of a full packet in px
out float opaque;
void main() {
  float lane = floor(mark.y * 0.5);
  float line = mix(${CLIENT_LINE.toFixed(3)}, ${SERVER_LINE.toFixed(3)}, mark.y - 2.0 * lane);
  float x = (mark.x - across.x) * across.y + corner.x * size.x;
  float y = (lane + line) * down - corner.y * size.x - corner.z * mark.z * size.y;
  gl_Position = vec4(x / plane.x * 2.0 - 1.0, 1.0 - y / plane.y * 2.0, 0.0, 1.0);
  opaque = mark.w;
}`;

const FRAGMENT = `#version 300 es
precision mediump float;
in float opaque;
uniform vec3 colour;
out vec4 pixel;
void main() { pixel = vec4(colour * opaque, opaque); }`;

/** How opaque a mark is that stands for so many packets. */
export function opacity(packets: number): number {
    return Math.min(1, 0.78 + 0.11 * Math.log10(Math.max(packets, 1)));
}

interface Layer {
    readonly kind: Kind;
    readonly array: WebGLVertexArrayObject;
    readonly corners: number;
    readonly instances: number;
    readonly buffers: readonly WebGLBuffer[];
}

/** The marks on a canvas. */
export class MarkLayer {
    private readonly program: WebGLProgram;
    private layers: Layer[] = [];
    /** Subtracted from times before they become single precision, which has 24 bits. */
    private origin = 0;

    private constructor(private readonly gl: WebGL2RenderingContext) {
        this.program = link(gl);
    }

    /** Null where the browser has no WebGL2. */
    static on(canvas: HTMLCanvasElement): MarkLayer | null {
        // Kept, so that an export may read the picture whenever it likes.
        const gl = canvas.getContext("webgl2", {
            antialias: true,
            premultipliedAlpha: true,
            preserveDrawingBuffer: true,
        });
        return gl ? new MarkLayer(gl) : null;
    }

    /** Take these marks in place of those before; `shapeOf` says how a kind is drawn, `seen` whether it is. */
    load(marks: Marks, shapeOf: (kind: Kind) => Kind["shape"], seen: (kind: Kind) => boolean): void {
        this.drop();
        this.origin = marks.time[0] ?? 0;
        const counts = new Array<number>(KINDS.length).fill(0);
        for (const kind of marks.kind) counts[kind] = (counts[kind] ?? 0) + 1;
        const columns = counts.map((count) => new Float32Array(count * STRIDE));
        const filled = new Array<number>(KINDS.length).fill(0);
        for (let mark = 0; mark < marks.time.length; mark += 1) {
            const kind = marks.kind[mark] as number;
            const column = columns[kind];
            if (!column) continue;
            const at = filled[kind] as number;
            filled[kind] = at + STRIDE;
            column[at] = (marks.time[mark] as number) - this.origin;
            column[at + 1] = (marks.lane[mark] as number) * 2 + (marks.server[mark] as number);
            column[at + 2] = share(marks.size[mark] as number);
            column[at + 3] = opacity(marks.packets[mark] as number);
        }
        KINDS.forEach((kind, number) => {
            const column = columns[number];
            if (column && column.length > 0 && seen(kind)) this.layers.push(this.layer(kind, shapeOf(kind), column));
        });
    }

    private layer(kind: Kind, shape: Kind["shape"], column: Float32Array): Layer {
        const { gl } = this;
        const array = gl.createVertexArray();
        const corners = gl.createBuffer();
        const marks = gl.createBuffer();
        const triangles = shape.flatMap(fan);
        gl.bindVertexArray(array);
        gl.bindBuffer(gl.ARRAY_BUFFER, corners);
        gl.bufferData(gl.ARRAY_BUFFER, new Float32Array(triangles.flat()), gl.STATIC_DRAW);
        const corner = gl.getAttribLocation(this.program, "corner");
        gl.enableVertexAttribArray(corner);
        gl.vertexAttribPointer(corner, 3, gl.FLOAT, false, 0, 0);
        gl.bindBuffer(gl.ARRAY_BUFFER, marks);
        gl.bufferData(gl.ARRAY_BUFFER, column, gl.STATIC_DRAW);
        const mark = gl.getAttribLocation(this.program, "mark");
        gl.enableVertexAttribArray(mark);
        gl.vertexAttribPointer(mark, STRIDE, gl.FLOAT, false, 0, 0);
        gl.vertexAttribDivisor(mark, 1);
        gl.bindVertexArray(null);
        return { kind, array, corners: triangles.length, instances: column.length / STRIDE, buffers: [corners, marks] };
    }

    /** Draw what is in sight of a chart's area, on its whole canvas; `ratio` is device pixels a px. */
    draw(area: Area, lane: number, ratio: number, colourOf: (kind: Kind) => Colour): void {
        const { gl, program } = this;
        const { canvas } = gl;
        const [from, to] = area.x.domain;
        gl.disable(gl.SCISSOR_TEST);
        gl.clearColor(0, 0, 0, 0);
        gl.clear(gl.COLOR_BUFFER_BIT);
        const bottom = canvas.height - Math.round((area.top + area.height) * ratio);
        const plane = [
            Math.round(area.left * ratio),
            bottom,
            Math.round(area.width * ratio),
            Math.round(area.height * ratio),
        ] as const;
        gl.viewport(...plane);
        gl.enable(gl.SCISSOR_TEST);
        gl.scissor(...plane);
        gl.enable(gl.BLEND);
        gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
        gl.useProgram(program);
        const at = (name: string): WebGLUniformLocation | null => gl.getUniformLocation(program, name);
        gl.uniform2f(at("plane"), area.width, area.height);
        gl.uniform2f(at("across"), from - this.origin, area.width / (to - from));
        gl.uniform1f(at("down"), lane);
        gl.uniform2f(at("size"), symbols(lane), rise(lane));
        for (const layer of this.layers) {
            gl.uniform3f(at("colour"), ...colourOf(layer.kind));
            gl.bindVertexArray(layer.array);
            gl.drawArraysInstanced(gl.TRIANGLES, 0, layer.corners, layer.instances);
        }
        gl.bindVertexArray(null);
    }

    /** Give the memory of the marks back. */
    drop(): void {
        for (const layer of this.layers) {
            this.gl.deleteVertexArray(layer.array);
            layer.buffers.forEach((buffer) => this.gl.deleteBuffer(buffer));
        }
        this.layers = [];
    }
}

/** A convex polygon as triangles. */
export function fan<T>(corners: readonly T[]): T[] {
    const triangles: T[] = [];
    for (let corner = 2; corner < corners.length; corner += 1) {
        triangles.push(corners[0] as T, corners[corner - 1] as T, corners[corner] as T);
    }
    return triangles;
}

function link(gl: WebGL2RenderingContext): WebGLProgram {
    const program = gl.createProgram();
    for (const [kind, source] of [
        [gl.VERTEX_SHADER, VERTEX],
        [gl.FRAGMENT_SHADER, FRAGMENT],
    ] as const) {
        const shader = gl.createShader(kind);
        if (!shader) throw new Error("The graphics context was lost; load the page again.");
        gl.shaderSource(shader, source);
        gl.compileShader(shader);
        gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) {
        throw new Error(
            `The shaders of the packet marks do not link: ${gl.getProgramInfoLog(program) ?? "no reason given"}`,
        );
    }
    return program;
}
