/** The point nearest to a place on the screen; -1 when none is within `reach` pixels. */
export function nearest(
    count: number,
    x: number,
    y: number,
    reach: number,
    at: (index: number) => readonly [number, number] | null,
): number {
    let best = -1;
    let least = reach * reach;
    for (let index = 0; index < count; index += 1) {
        const place = at(index);
        if (place === null) continue;
        const distance = (place[0] - x) ** 2 + (place[1] - y) ** 2;
        if (distance <= least) {
            least = distance;
            best = index;
        }
    }
    return best;
}
