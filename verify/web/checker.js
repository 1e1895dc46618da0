/**
 * A second checker of proofs about generalized total variation solutions, for Node and browsers.
 *
 * Written from verify/SCHEMA.md (certificates; both as JSON and as arrays) and docs/theorem2.md
 * (partitions), not from the kernel in Python: where both say CERTIFIED, two programs that share no
 * code have multiplied the same witness out. One file, no dependency, no network; every number is
 * an exact rational on BigInt, and whatever is irrational is enclosed from both sides.
 *
 *   node checker.js FILE [--data FILE] [--rtol R] [--budget STEPS] [--json]
 *
 * In a page, `gtvChecker.check(text)` returns the same answer.
 */
(function (scope) {
  "use strict";

  // ------------------------------------------------------------------------------------------
  // Answers, and the work that is allowed
  // ------------------------------------------------------------------------------------------

  /** Exit statuses, as `python -m verify check` has them. */
  const EXIT = { CERTIFIED: 0, REFUTED: 4, UNPROVED: 3, MALFORMED: 5, USAGE: 2, INTERNAL: 1 };

  /** An answer that ends a check wherever it is found. */
  class Verdict extends Error {
    /**
     * @param {"CERTIFIED"|"REFUTED"|"UNPROVED"} status
     * @param {string} kind - Class of the reason; for REFUTED the reason begins with it.
     * @param {string} text
     */
    constructor(status, kind, text) {
      super(status === "REFUTED" ? `${kind}: ${text}` : text);
      this.status = status;
      this.kind = kind;
    }
  }

  const malformed = (text) => new Verdict("REFUTED", "malformed", text);
  const falseDocument = (text) => new Verdict("REFUTED", "false document", text);
  const unproved = (text, kind = "unproved") => new Verdict("UNPROVED", kind, text);

  /** Steps allowed for a file of up to a megabyte, about .1 us each; in proportion beyond. */
  const STEPS = 50_000_000;
  const MEGABYTE = 1_000_000;
  /** Of the check that is going on: checks are synchronous, so there is one at a time. */
  let stepsLeft = STEPS;
  let stepsAllowed = STEPS;

  /** Count work before it is done, and give up beyond the budget. */
  function spend(steps) {
    stepsLeft -= steps;
    if (stepsLeft < 0) {
      throw unproved(
        `the check needs more than its budget of ${stepsAllowed} steps: --budget allows more`,
        "budget",
      );
    }
  }

  // ------------------------------------------------------------------------------------------
  // Strict JSON: duplicate keys are refused, and the text of a number is kept
  // ------------------------------------------------------------------------------------------

  /** A number as it is written: JSON.parse would round it. */
  class JsonNumber {
    constructor(text) {
      this.text = text;
      this.isInteger = /^-?\d+$/.test(text);
    }
  }

  /** Deeper nesting than this is refused; no document of a known schema needs more than seven. */
  const DEPTH = 900;
  /** Digits of a JSON integer. */
  const INTEGER_DIGITS = 4300;
  const ESCAPES = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

  /** Reads one text. Objects become Maps, numbers JsonNumbers. */
  class JsonReader {
    constructor(text, what) {
      this.text = text;
      this.what = what;
      this.at = 0;
      this.depth = 0;
    }

    fail(what) {
      throw malformed(`${this.what}not a JSON text: ${what} at character ${this.at}`);
    }

    document() {
      const value = this.value();
      this.space();
      if (this.at < this.text.length) this.fail("more text");
      return value;
    }

    space() {
      for (;;) {
        const c = this.text.charCodeAt(this.at);
        if (c !== 32 && c !== 10 && c !== 13 && c !== 9) return;
        this.at += 1;
      }
    }

    value() {
      this.space();
      const c = this.text[this.at];
      if (c === "{") return this.object();
      if (c === "[") return this.array();
      if (c === '"') return this.string();
      if (c === "n") return this.word("null", null);
      if (c === "t") return this.word("true", true);
      if (c === "f") return this.word("false", false);
      return this.number();
    }

    word(text, value) {
      if (!this.text.startsWith(text, this.at)) this.fail("expected a value");
      this.at += text.length;
      return value;
    }

    enter() {
      this.at += 1;
      this.depth += 1;
      if (this.depth > DEPTH) this.fail("too deeply nested");
    }

    /** After an item: whether another one follows. */
    more(end) {
      this.space();
      const c = this.text[this.at];
      if (c !== "," && c !== end) this.fail(`expected , or ${end}`);
      this.at += 1;
      return c === ",";
    }

    /** After an opening bracket: whether it is closed at once. */
    closed(end) {
      this.space();
      if (this.text[this.at] !== end) return false;
      this.at += 1;
      return true;
    }

    array() {
      this.enter();
      const items = [];
      if (!this.closed("]")) {
        do items.push(this.value());
        while (this.more("]"));
      }
      this.depth -= 1;
      return items;
    }

    object() {
      this.enter();
      const items = new Map();
      if (!this.closed("}")) {
        do this.member(items);
        while (this.more("}"));
      }
      this.depth -= 1;
      return items;
    }

    member(items) {
      this.space();
      if (this.text[this.at] !== '"') this.fail("expected a key");
      const key = this.string();
      this.space();
      if (this.text[this.at] !== ":") this.fail("expected :");
      this.at += 1;
      if (items.has(key)) this.fail("an object has the same key twice");
      items.set(key, this.value());
    }

    string() {
      this.at += 1;
      const parts = [];
      let start = this.at;
      for (;;) {
        const c = this.text.charCodeAt(this.at);
        if (!(c >= 32)) this.fail("a string with a control character or without an end");
        if (c === 34) break;
        if (c === 92) {
          parts.push(this.text.slice(start, this.at), this.escape());
          start = this.at;
        } else {
          this.at += 1;
        }
      }
      const tail = this.text.slice(start, this.at);
      this.at += 1;
      return parts.length ? parts.join("") + tail : tail;
    }

    escape() {
      const c = this.text[this.at + 1];
      if (c === "u") {
        const digits = this.text.slice(this.at + 2, this.at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(digits)) this.fail("a wrong escape");
        this.at += 6;
        return String.fromCharCode(parseInt(digits, 16));
      }
      if (c === undefined || !Object.hasOwn(ESCAPES, c)) this.fail("a wrong escape");
      this.at += 2;
      return ESCAPES[c];
    }

    number() {
      const pattern = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
      pattern.lastIndex = this.at;
      const found = pattern.exec(this.text);
      if (found === null) this.fail("expected a value");
      const number = new JsonNumber(found[0]);
      if (number.isInteger && number.text.replace("-", "").length > INTEGER_DIGITS) {
        this.fail(`an integer of more than ${INTEGER_DIGITS} digits`);
      }
      this.at = pattern.lastIndex;
      return number;
    }
  }

  /**
   * Read JSON from bytes, which must be UTF-8, or from text.
   * @param {Uint8Array|string} source
   * @param {string} what - Begins the message.
   */
  function readJson(source, what = "") {
    let text = source;
    if (typeof source !== "string") {
      try {
        text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(source);
      } catch {
        throw malformed(`${what}not a JSON text: not UTF-8`);
      }
    }
    return new JsonReader(text, what).document();
  }

  /** A value of a document in a message: short, on one line. */
  function shown(value) {
    let text = String(value);
    if (value instanceof JsonNumber) text = value.text;
    else if (value instanceof Map) text = "an object";
    else if (Array.isArray(value)) text = "a list";
    else if (typeof value === "string") text = JSON.stringify(value);
    return text.length > 40 ? `${text.slice(0, 40)}...` : text;
  }

  /** Where a document that was read from arrays has the hash of its data: no key of JSON is that. */
  const ARRAYS_HASH = Symbol("hash of arrays");

  /** @returns {Map} the value, an object with these keys and no others. */
  function objectWith(value, where, required, optional = []) {
    if (!(value instanceof Map)) throw malformed(`${where} must be an object`);
    for (const key of required) {
      if (!value.has(key)) throw malformed(`${where}: missing ${key}`);
    }
    for (const key of value.keys()) {
      if (key === ARRAYS_HASH) continue;
      if (!required.includes(key) && !optional.includes(key)) {
        throw malformed(`${where}: unknown ${shown(key)}`);
      }
    }
    return value;
  }

  /** @returns {Array} the value, a list, of the length if one is given. */
  function listOf(value, where, length = null) {
    if (!Array.isArray(value)) throw malformed(`${where} must be a list`);
    if (length !== null && value.length !== length) {
      throw malformed(`${where} must be a list of length ${length}`);
    }
    return value;
  }

  /** @returns {number} an integer with low <= value < high. */
  function integerIn(value, where, low, high) {
    const isJson = value instanceof JsonNumber && value.isInteger;
    const found = isJson ? Number(value.text) : typeof value === "number" ? value : NaN;
    // Numbers above 2^53 may be rounded, but are then above every bound that is used here.
    if (!(low <= found && found < high)) {
      throw malformed(`${where}: expected an integer in [${low}, ${high}), got ${shown(value)}`);
    }
    return found + 0; // -0 becomes 0
  }

  // ------------------------------------------------------------------------------------------
  // Rational numbers: n 2^e / d with d odd and positive. Doubles have d = 1, and cost no gcd.
  // ------------------------------------------------------------------------------------------

  /** No number may have more bits; a number of a document has at most 2^20. */
  const MOST_BITS = 2 ** 24;
  /** Powers of two that sort integers by size, and how many words of 64 bits numbers below have. */
  const SIZES = [];
  for (let size = 1; 64 * size <= MOST_BITS; size *= 4) {
    const limit = 1n << BigInt(64 * size);
    SIZES.push({ words: size, limit, least: -limit });
  }

  /** About how many words an integer has, by comparisons alone: at most four times too many. */
  function words(n) {
    for (const size of SIZES) {
      if (n < size.limit && size.least < n) return size.words;
    }
    throw unproved("a number has too many bits", "budget");
  }

  /** The two halves of a double, to look at: little-endian or not, DataView says which is which. */
  const DOUBLE = new DataView(new ArrayBuffer(8));
  /** Integers below are doubles when rounded. */
  const DOUBLE_LIMIT = 1n << 1023n;

  /** Number of bits of a positive integer. */
  function bitLength(n) {
    spend(words(n) >> 2);
    if (n >= DOUBLE_LIMIT) {
      const text = n.toString(16);
      return 4 * (text.length - 1) + 32 - Math.clz32(parseInt(text[0], 16));
    }
    DOUBLE.setFloat64(0, Number(n));
    const high = DOUBLE.getUint32(0);
    const bits = (high >>> 20) - 1022;
    // Rounding changes the number of bits only where it ends at a power of two.
    const isPower = (high & 0xfffff) === 0 && DOUBLE.getUint32(4) === 0;
    return isPower && n >> BigInt(bits - 1) === 0n ? bits - 1 : bits;
  }

  /** How often 2 divides a positive integer. */
  function twos(n) {
    return bitLength(n & -n) - 1;
  }

  const absolute = (n) => (n < 0n ? -n : n);

  function gcd(a, b) {
    const size = Math.min(words(a), words(b));
    // Euclid takes about 37 steps a word, each over all words.
    spend(4 * size * (size + 4) + Math.max(words(a), words(b)));
    let [x, y] = [absolute(a), absolute(b)];
    while (y !== 0n) [x, y] = [y, x % y];
    return x;
  }

  function product(a, b) {
    spend(1 + ((words(a) * words(b)) >> 5));
    return a * b;
  }

  function shifted(n, by) {
    if (by === 0 || n === 0n) return n;
    if (by > MOST_BITS) throw unproved("a number has too many bits", "budget");
    spend(1 + (by >> 10));
    return by > 0 ? n << BigInt(by) : n >> BigInt(-by);
  }

  class Rational {
    /**
     * @param {bigint} n
     * @param {number} e
     * @param {bigint} d - Odd and positive.
     */
    constructor(n, e = 0, d = 1n) {
      this.n = n;
      this.e = n === 0n ? 0 : e;
      this.d = n === 0n ? 1n : d;
    }

    /** n / d for any integers with d > 0, in lowest terms. */
    static ratio(n, d) {
      if (n === 0n) return ZERO;
      const k = twos(d);
      const odd = d >> BigInt(k);
      const common = odd === 1n ? 1n : gcd(n, odd);
      return new Rational(n / common, -k, odd / common);
    }

    static of(integer) {
      return new Rational(BigInt(integer));
    }

    get sign() {
      return this.n > 0n ? 1 : this.n < 0n ? -1 : 0;
    }

    /** A double: its value, exactly. */
    static double(x) {
      if (Number.isInteger(x)) return new Rational(BigInt(x));
      DOUBLE.setFloat64(0, x);
      const high = DOUBLE.getUint32(0) & 0x7fffffff;
      const exponent = high >>> 20;
      // Below 2^53, so that the sum is exact.
      const mantissa = ((high & 0xfffff) + (exponent ? 2 ** 20 : 0)) * 2 ** 32 + DOUBLE.getUint32(4);
      return new Rational(BigInt(x < 0 ? -mantissa : mantissa), Math.max(exponent, 1) - 1075);
    }

    neg() {
      return new Rational(-this.n, this.e, this.d);
    }

    abs() {
      return this.n < 0n ? this.neg() : this;
    }

    add(other) {
      if (this.n === 0n) return other;
      if (other.n === 0n) return this;
      let [a, b, d] = [this.n, other.n, this.d];
      if (this.d !== other.d) {
        const common = this.d === 1n || other.d === 1n ? 1n : gcd(this.d, other.d);
        a = product(a, other.d / common);
        b = product(b, this.d / common);
        d = product(this.d / common, other.d);
      }
      const e = Math.min(this.e, other.e);
      const n = shifted(a, this.e - e) + shifted(b, other.e - e);
      spend(1 + (words(n) >> 4));
      return new Rational(n, e, d).tidied();
    }

    sub(other) {
      return this.add(other.neg());
    }

    mul(other) {
      const d = this.d === 1n ? other.d : other.d === 1n ? this.d : product(this.d, other.d);
      return new Rational(product(this.n, other.n), this.e + other.e, d).tidied();
    }

    /** Lowest terms, where the denominator has grown long. */
    tidied() {
      if (this.d < LONG) return this;
      const common = gcd(this.n, this.d);
      return common === 1n ? this : new Rational(this.n / common, this.e, this.d / common);
    }

    inverse() {
      const k = twos(absolute(this.n));
      const odd = this.n >> BigInt(k);
      return new Rational(odd < 0n ? -this.d : this.d, -this.e - k, absolute(odd));
    }

    div(other) {
      return this.mul(other.inverse());
    }

    times(integer) {
      return new Rational(product(this.n, BigInt(integer)), this.e, this.d);
    }

    half() {
      return new Rational(this.n, this.e - 1, this.d);
    }

    square() {
      return this.mul(this);
    }

    compare(other) {
      if (this.sign !== other.sign) return this.sign - other.sign;
      return this.sub(other).sign;
    }

    equals(other) {
      return this.compare(other) === 0;
    }

    below(other) {
      return this.compare(other) < 0;
    }

    above(other) {
      return this.compare(other) > 0;
    }

    /** The largest integer that is at most 2^bits times this. */
    floor(bits) {
      const k = this.e + bits;
      const n = shifted(this.n, Math.max(k, 0));
      if (this.d === 1n) return shifted(n, Math.min(k, 0));
      const d = shifted(this.d, Math.max(-k, 0));
      spend(1 + ((words(n) * words(d)) >> 4));
      const quotient = n / d;
      return n < 0n && quotient * d !== n ? quotient - 1n : quotient;
    }

    /** The least integer that is at least 2^bits times this. */
    ceil(bits) {
      return -this.neg().floor(bits);
    }

    /** As Python prints fractions. */
    toString() {
      const n = shifted(this.n, Math.max(this.e, 0));
      const d = shifted(this.d, Math.max(-this.e, 0));
      const common = gcd(n, d);
      return d === common ? `${n / common}` : `${n / common}/${d / common}`;
    }
  }

  /** The 52 stored digits of a double. */
  const MANTISSA = (1n << 52n) - 1n;
  const ZERO = new Rational(0n);
  const ONE = new Rational(1n);
  /** Denominators below are left as they come. */
  const LONG = 1n << 256n;
  const larger = (a, b) => (a.below(b) ? b : a);
  const smaller = (a, b) => (b.below(a) ? b : a);

  function sum(numbers) {
    return numbers.reduce((total, x) => total.add(x), ZERO);
  }

  function dot(a, b) {
    let total = ZERO;
    for (let j = 0; j < a.length; j += 1) {
      if (a[j].n !== 0n && b[j].n !== 0n) total = total.add(a[j].mul(b[j]));
    }
    return total;
  }

  // ------------------------------------------------------------------------------------------
  // Doubles: closest to a decimal, and on a stated side of a rational
  // ------------------------------------------------------------------------------------------

  /** The double closest to a rational, ties to even, perhaps infinite. */
  function nearest(q) {
    if (q.n === 0n) return 0;
    const size = q.abs();
    // 2^k < size < 2^(k + 2)
    const k = bitLength(size.n) - bitLength(size.d) + size.e - 1;
    if (k > 1024) return q.sign * Infinity;
    if (k < -1080) return 0;
    let unit = Math.max(k - 52, LAST_DIGIT); // of the last digit
    if (size.floor(-unit) >= 1n << 53n) unit += 1;
    const digits = size.floor(-unit);
    const rest = size.sub(new Rational(digits, unit)).times(2);
    const order = rest.compare(new Rational(1n, unit));
    const up = order > 0 || (order === 0 && (digits & 1n) === 1n);
    return q.sign * assembled(up ? digits + 1n : digits, unit);
  }

  /** Exponent of the least positive double. */
  const LAST_DIGIT = -1074;

  /** The double digits 2^unit, where digits have at most 53 bits or are 2^53. */
  function assembled(digits, unit) {
    if (digits >> 53n) return assembled(digits >> 1n, unit + 1);
    const exponent = digits >> 52n ? unit - LAST_DIGIT + 1 : 0;
    if (exponent >= 2047) return Infinity;
    const view = new DataView(new ArrayBuffer(8));
    view.setBigUint64(0, (BigInt(exponent) << 52n) | (digits & MANTISSA));
    return view.getFloat64(0);
  }

  /** The double closest to a JSON number. Engines may look at 20 digits only: for more, exactly. */
  function doubleOf(text) {
    const [, sign, whole, , fraction = "", , exponent = "0"] =
      /^(-?)(\d+)(\.(\d+))?([eE]([+-]?\d+))?$/.exec(text);
    const digits = (whole + fraction).replace(/^0+/, "");
    if (digits.length <= 20) return Number(text);
    spend(digits.length);
    const power = Number(exponent) - fraction.length;
    if (power + digits.length > 400) return sign ? -Infinity : Infinity;
    if (power + digits.length < -400) return sign ? -0 : 0;
    // Digits beyond the 800th can only break a tie: one that is not zero stands for all.
    const head = digits.slice(0, 800);
    const sticky = /[1-9]/.test(digits.slice(800)) ? 1n : 0n;
    const n = BigInt(head) * 10n + sticky;
    const tens = power + (digits.length - head.length) - 1;
    const value =
      tens >= 0 ? new Rational(n * 10n ** BigInt(tens)) : Rational.ratio(n, 10n ** BigInt(-tens));
    return nearest(sign ? value.neg() : value);
  }

  /** The next double above. */
  function nextUp(x) {
    if (x === 0) return Number.MIN_VALUE;
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, x);
    view.setBigInt64(0, view.getBigInt64(0) + (x > 0 ? 1n : -1n));
    return view.getFloat64(0);
  }

  /** The least double that is at least q; null where there is none. */
  function doubleAbove(q) {
    let x = nearest(q);
    if (x === Infinity) return null;
    if (x === -Infinity) x = -Number.MAX_VALUE;
    else if (Rational.double(x).below(q)) x = nextUp(x);
    return Number.isFinite(x) ? x + 0 : null;
  }

  /** The largest double that is at most q; null where there is none. */
  function doubleBelow(q) {
    const x = doubleAbove(q.neg());
    return x === null ? null : 0 - x;
  }

  // ------------------------------------------------------------------------------------------
  // Enclosures, from stated sides: square roots, logarithms, exponentials
  // ------------------------------------------------------------------------------------------

  /** The largest integer whose square is at most n >= 0. */
  function integerRoot(n) {
    if (n < 2n) return n;
    const size = words(n);
    spend(20 + ((size * size) >> 3));
    const bits = bitLength(n);
    // From above: Newton's method then descends to the root.
    const shift = Math.max(0, (bits - 52) & ~1);
    const start = BigInt(Math.ceil(Math.sqrt(Number(n >> BigInt(shift)) + 1)) + 1);
    let x = start << BigInt(shift / 2);
    for (;;) {
      const next = (x + n / x) >> 1n;
      if (next >= x) return x;
      x = next;
    }
  }

  /** Bits of a root's numerator: its relative error is below 2^-255. */
  const ROOT_BITS = 512;

  /** @returns {{lower: Rational, upper: Rational}} around the root of q >= 0, equal if rational. */
  function rootOf(q) {
    if (q.n === 0n) return { lower: ZERO, upper: ZERO };
    // sqrt(n / d) = sqrt(n d) / d, and an even exponent comes out of the root.
    const odd = q.e & 1;
    const radicand = shifted(product(q.n, q.d), odd);
    const k = Math.max(0, (ROOT_BITS - bitLength(radicand) + 1) >> 1);
    const scaled = shifted(radicand, 2 * k);
    const root = integerRoot(scaled);
    const e = (q.e - odd) / 2 - k;
    const lower = new Rational(root, e, q.d);
    if (root * root === scaled) return { lower, upper: lower };
    return { lower, upper: new Rational(root + 1n, e, q.d) };
  }

  /** Arguments of exp above are not enclosed. */
  const LARGEST_EXPONENT = new Rational(1n, 14);
  /** exp x is below, for x < -2^14: 2^14 / ln 2 is 23637.1. */
  const TINY = new Rational(1n, -23637);

  /** Logarithms and exponentials in integers of units of 2^-bits, bits at most 384. */
  function enclosures(bits) {
    const shift = BigInt(bits);
    const unit = 1n << shift;

    /** 2^bits atanh(1/k), less at most 400 units: each of fewer than 200 terms loses below two. */
    function arctanhOfInverse(k) {
      const square = BigInt(k * k);
      let power = unit / BigInt(k);
      let total = 0n;
      for (let i = 1n; power > 0n; i += 2n) {
        total += power / i;
        power /= square;
      }
      return total;
    }

    /** 2^bits ln 2, within 2^14 units: ln 2 = 18 atanh(1/26) - 2 atanh(1/4801) + 8 atanh(1/8749). */
    const ln2 =
      18n * arctanhOfInverse(26) - 2n * arctanhOfInverse(4801) + 8n * arctanhOfInverse(8749);

    /**
     * Enclosure of ln q for q > 0, of width 2^54 units.
     *
     * q = 2^k m with 1/2 < m < 2, and ln m = 2 atanh t with t = (m - 1)/(m + 1), |t| < 1/3. m is
     * rounded by a unit and t by two; each of fewer than 130 terms loses below three units, and the
     * tail is below one: fewer than 2^10 units. |k| < 2^25, times the 2^14 units of ln 2, is 2^39.
     * What is added on both sides is 2^53.
     */
    function logarithm(q) {
      spend(2 * bits);
      const k = bitLength(q.n) - bitLength(q.d) + q.e;
      const m = new Rational(q.n, q.e - k, q.d).floor(bits);
      const t = ((m - unit) << shift) / (m + unit);
      const square = (t * t) >> shift;
      let power = t;
      let total = 0n;
      for (let i = 1n; power !== 0n && power !== -1n; i += 2n) {
        total += power / i;
        power = (power * square) >> shift;
      }
      const value = 2n * total + BigInt(k) * ln2;
      const width = 1n << 53n;
      return {
        lower: new Rational(value - width, -bits),
        upper: new Rational(value + width, -bits),
      };
    }

    /**
     * Enclosure of exp x for x <= 2^14, of relative width 2^34 units.
     *
     * x = k ln 2 + f with |f| < 1.1; f is off by fewer than 2^30 units (|k| < 2^15 times 2^14). exp f
     * is the 2^12-th power of exp(f/2^12): fewer than 60 Taylor terms lose below two units each, and
     * 12 squarings double the relative error and add two units each: all in all below
     * 2^30 + 2^12 (1 + 2^7 + 2 12) 2 < 2^32 units, times exp f < 3.1. What is added is 2^34.
     */
    function exponential(x) {
      if (x.below(LARGEST_EXPONENT.neg())) return { lower: ZERO, upper: TINY };
      spend(bits);
      const fixed = x.floor(bits);
      const k = (fixed + ln2 / 2n) / ln2;
      const step = (fixed - k * ln2) >> 12n;
      let term = unit;
      let total = 0n;
      for (let i = 1n; term !== 0n && term !== -1n; i += 1n) {
        total += term;
        term = ((term * step) >> shift) / i;
      }
      for (let i = 0; i < 12; i += 1) total = (total * total) >> shift;
      const width = 1n << 34n;
      const e = Number(k) - bits;
      return { lower: new Rational(total - width, e), upper: new Rational(total + width, e) };
    }

    return { logarithm, exponential };
  }

  const { logarithm: logarithmOf, exponential: exponentialOf } = enclosures(384);
  /** For powers, of which there are many: wide by 2^-130 and, times an exponent, still by little. */
  const COARSE = enclosures(192);

  /** Enclosure of ln(1 + exp z). */
  function softplusOf(z) {
    const tail = exponentialOf(z.abs().neg());
    // 0 < ln(1 + t) <= t
    const lower = logarithmOf(ONE.add(tail.lower)).lower;
    const upper = smaller(logarithmOf(ONE.add(tail.upper)).upper, tail.upper);
    const rest = { lower: larger(lower, ZERO), upper };
    if (z.sign <= 0) return rest;
    return { lower: z.add(rest.lower), upper: z.add(rest.upper) };
  }

  /** Integer exponents up to this one are multiplied out. */
  const SHORT_EXPONENT = Rational.of(16);

  /** Enclosure of x^s for 0 <= x <= 1 and s > 0, or for x >= 1 and 0 < s <= 1. */
  function powerOf(x, s) {
    if (x.n === 0n || x.equals(ONE)) return { lower: x, upper: x };
    if (!s.above(SHORT_EXPONENT) && s.floor(0) === s.ceil(0)) {
      let exact = ONE;
      for (let i = s.floor(0); i > 0n; i -= 1n) exact = exact.mul(x);
      return { lower: exact, upper: exact };
    }
    const { lower, upper } = COARSE.logarithm(x);
    const least = s.mul(lower);
    const most = x.below(ONE) ? smaller(s.mul(upper), ZERO) : s.mul(upper);
    const wide = most.sub(least);
    const below = COARSE.exponential(least);
    // exp(y + h) <= (1 + 2 h) exp(y) for 0 <= h <= 1
    const above = wide.above(ONE)
      ? COARSE.exponential(most).upper
      : below.upper.mul(ONE.add(wide.times(2)));
    return { lower: larger(below.lower, ZERO), upper: above };
  }

  /** Enclosure of the sum of the powers x^s, for x from 0 to 1. */
  function sumOfPowers(list, s) {
    const powers = list.map((x) => powerOf(x, s));
    return { lower: sum(powers.map((x) => x.lower)), upper: sum(powers.map((x) => x.upper)) };
  }

  /** Upper bound on p ln p for p >= 0, with 0 ln 0 = 0. */
  function entropyAbove(p) {
    if (p.n === 0n) return ZERO;
    return p.mul(logarithmOf(p).upper);
  }

  /** Quotients of more different denominators than this are rounded before they are added. */
  const DENOMINATORS = 64;
  const QUOTIENT_BITS = 256;

  /**
   * A sum that is exact while its terms have few denominators, else rounded to one side.
   *
   * What has no odd denominator is one integer on a grid, however many terms there are.
   */
  class OneSidedSum {
    /** @param {"lower"|"upper"} side */
    constructor(side) {
      this.side = side;
      this.n = 0n;
      this.e = 0;
      this.parts = new Map(); // null after there were too many
    }

    add(q) {
      if (q.d === 1n) {
        this.addDyadic(q.n, q.e);
        return;
      }
      if (this.parts === null) {
        this.addRounded(q);
        return;
      }
      const part = this.parts.get(q.d);
      this.parts.set(q.d, part === undefined ? q : part.add(q));
      if (this.parts.size <= DENOMINATORS) return;
      this.parts.forEach((x) => this.addRounded(x));
      this.parts = null;
    }

    /** Add n 2^e. */
    addDyadic(n, e) {
      if (n === 0n) return;
      if (e < this.e) {
        this.n = shifted(this.n, this.e - e);
        this.e = e;
      }
      this.n += shifted(n, e - this.e);
      spend(1 + (words(this.n) >> 4));
    }

    addRounded(q) {
      const n = this.side === "lower" ? q.floor(QUOTIENT_BITS) : q.ceil(QUOTIENT_BITS);
      this.addDyadic(n, -QUOTIENT_BITS);
    }

    total() {
      const dyadic = new Rational(this.n, this.e);
      return this.parts === null ? dyadic : sum([dyadic, ...this.parts.values()]);
    }
  }

  // ------------------------------------------------------------------------------------------
  // SHA-256 of ASCII text
  // ------------------------------------------------------------------------------------------

  /** The first 32 bits of the fractional parts of roots of the first primes, as the standard says. */
  function primeRoots(count, root) {
    const found = [];
    for (let p = 2n; found.length < count; p += 1n) {
      let isPrime = true;
      for (let q = 2n; q * q <= p; q += 1n) if (p % q === 0n) isPrime = false;
      if (isPrime) found.push(Number(root(p) & 0xffffffffn));
    }
    return Uint32Array.from(found);
  }

  /** The largest x with x^3 <= n. */
  function cubeRoot(n) {
    let x = 0n;
    for (let bit = 1n << 48n; bit > 0n; bit >>= 1n) if ((x + bit) ** 3n <= n) x += bit;
    return x;
  }

  const SHA_START = primeRoots(8, (p) => integerRoot(p << 64n));
  const SHA_ROUNDS = Int32Array.from(primeRoots(64, (p) => cubeRoot(p << 96n)));
  /** Bytes that are read, hashed and checked at a time: they stay in the caches of the processor. */
  const PIECE = 2 ** 16;

  /** A digest of bytes that come in pieces. */
  class Sha256 {
    constructor() {
      this.state = Int32Array.from(SHA_START);
      this.w = new Int32Array(64);
      this.rest = new Uint8Array(64);
      this.length = 0;
    }

    update(bytes) {
      spend(4 * bytes.length);
      const filled = this.length % 64;
      this.length += bytes.length;
      let at = 0;
      if (filled) {
        at = Math.min(64 - filled, bytes.length);
        this.rest.set(bytes.subarray(0, at), filled);
        if (filled + at < 64) return;
        this.block(this.rest, 0);
      }
      for (; at + 64 <= bytes.length; at += 64) this.block(bytes, at);
      this.rest.set(bytes.subarray(at));
    }

    /** Mix one block of 64 bytes into the state. */
    block(bytes, at) {
      const { state, w } = this;
      for (let i = 0, k = at; i < 16; i += 1, k += 4) {
        w[i] = (bytes[k] << 24) | (bytes[k + 1] << 16) | (bytes[k + 2] << 8) | bytes[k + 3];
      }
      for (let i = 16; i < 64; i += 1) {
        const x = w[i - 15];
        const y = w[i - 2];
        const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
        const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
        w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
      }
      let a = state[0], b = state[1], c = state[2], d = state[3]; // prettier-ignore
      let e = state[4], f = state[5], g = state[6], h = state[7]; // prettier-ignore
      for (let i = 0; i < 64; i += 1) {
        const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
        const t1 = (h + s1 + ((e & f) ^ (~e & g)) + SHA_ROUNDS[i] + w[i]) | 0;
        const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
        const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
        h = g; g = f; f = e; e = (d + t1) | 0; d = c; c = b; b = a; a = (t1 + t2) | 0; // prettier-ignore
      }
      state[0] += a; state[1] += b; state[2] += c; state[3] += d; // prettier-ignore
      state[4] += e; state[5] += f; state[6] += g; state[7] += h; // prettier-ignore
    }

    /** @returns {string} hexadecimal digits; nothing can follow. */
    digest() {
      const { length } = this;
      // The bit after the end, zeros, and the length in bits fill the last block.
      const end = new Uint8Array(9 + ((119 - (length % 64)) % 64));
      end[0] = 0x80;
      new DataView(end.buffer).setBigUint64(end.length - 8, BigInt(length) * 8n);
      this.update(end);
      return [...this.state].map((x) => (x >>> 0).toString(16).padStart(8, "0")).join("");
    }
  }

  /**
   * The digest of bytes, or of ASCII text, in hexadecimal digits.
   * @param {Uint8Array|string} source
   */
  function sha256(source) {
    const hash = new Sha256();
    for (let at = 0; at < source.length; at += PIECE) {
      const piece = source.slice(at, at + PIECE);
      hash.update(typeof piece === "string" ? Uint8Array.from(piece, (c) => c.charCodeAt(0)) : piece);
    }
    return hash.digest();
  }

  // ------------------------------------------------------------------------------------------
  // Problem data: read, and brought into the canonical form that is hashed
  // ------------------------------------------------------------------------------------------

  /** Numbers of nodes and dimensions are below. */
  const MOST = 2 ** 40;
  const [LEAST_LABEL, LABEL_LIMIT] = [-(1n << 63n), 1n << 64n];
  const HEX_DOUBLE = /^(-?)0x([01])\.([0-9a-f]{13})p([+-](?:0|[1-9][0-9]*))$/;

  /** A real number of the data: its value, a Rational or an infinite number, and its text. */
  class Real {
    constructor(value, text) {
      this.value = value;
      this.text = text;
    }
  }

  /** The text that Python's float.hex prints. */
  function hexOf(x) {
    if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
    if (x === 0) return "0x0.0p+0";
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, Math.abs(x));
    const bits = view.getBigUint64(0);
    const exponent = Number(bits >> 52n);
    const digits = (bits & MANTISSA).toString(16).padStart(13, "0");
    const power = Math.max(exponent, 1) - 1023;
    const [sign, lead] = [x < 0 ? "-" : "", exponent ? 1 : 0];
    return `${sign}0x${lead}.${digits}p${power < 0 ? "" : "+"}${power}`;
  }

  /** @returns {Rational|null} the double that a canonical text stands for. */
  function canonicalDouble(text) {
    if (text === "0x0.0p+0") return ZERO;
    const found = HEX_DOUBLE.exec(text);
    if (found === null) return null;
    const [, sign, lead, digits, exponent] = found;
    const power = Number(exponent);
    const normal = lead === "1" && power >= -1022 && power <= 1023;
    const subnormal = lead === "0" && exponent === "-1022" && /[1-9a-f]/.test(digits);
    if ((!normal && !subnormal) || exponent === "-0") return null;
    const n = BigInt(`0x${lead}${digits}`);
    return new Rational(sign ? -n : n, power - 52);
  }

  /**
   * Read a real number of the data.
   * @param {?string} infinite - "inf" or "-inf" where that is allowed.
   */
  function real(value, where, infinite = null) {
    spend(4);
    if (value instanceof JsonNumber) return realFromJson(value, where, infinite);
    if (typeof value !== "string")
      throw malformed(`${where}: expected a double, got ${shown(value)}`);
    if (value === infinite) return new Real(value === "inf" ? Infinity : -Infinity, value);
    const found = canonicalDouble(value);
    if (found === null) {
      throw malformed(`${where}: ${shown(value)} is not the canonical form of a finite double`);
    }
    return new Real(found, value);
  }

  /**
   * Doubles of an array, as a list of numbers: `at(k)` makes the Rational, or gives an infinite
   * number, where it is needed. Plain lists have `at`, too.
   */
  class DoubleList {
    /** @param {Float64Array} values */
    constructor(values) {
      this.values = values;
      this.length = values.length;
    }

    at(k) {
      return valueOfDouble(this.values[k]);
    }
  }

  /** The same as rows: `at(k)` is a list of numbers. */
  class DoubleTable extends DoubleList {
    constructor(values, columns) {
      super(values);
      this.columns = columns;
      this.length = values.length / columns;
    }

    at(k) {
      const row = new Array(this.columns);
      for (let j = 0, i = k * this.columns; j < row.length; j += 1, i += 1) {
        row[j] = valueOfDouble(this.values[i]);
      }
      return row;
    }
  }

  function valueOfDouble(x) {
    return x === Infinity || x === -Infinity ? x : Rational.double(x);
  }

  /** @returns {DoubleList} the list, if its entries are allowed in data. */
  function requireDoubles(list, where, infinite) {
    spend(4 * list.values.length);
    for (const x of list.values) {
      const isAllowed = Number.isFinite(x) ? !Object.is(x, -0) : hexOf(x) === infinite;
      if (Number.isNaN(x) || !isAllowed) {
        throw malformed(`${where}: expected a finite double and no -0, got ${x}`);
      }
    }
    return list;
  }

  function realFromJson(value, where, infinite) {
    const x = doubleOf(value.text);
    const text = hexOf(x);
    if (!Number.isFinite(x)) {
      if (text !== infinite || value.isInteger) {
        throw malformed(`${where}: expected a finite double, got ${shown(value)}`);
      }
      return new Real(x, text);
    }
    const exact = Rational.double(x);
    if (value.isInteger && exact.compare(new Rational(BigInt(value.text))) !== 0) {
      throw malformed(`${where}: the integer ${shown(value)} is not a double`);
    }
    return new Real(exact, text);
  }

  function reals(value, where, length) {
    if (value instanceof DoubleList) return requireDoubles(value, where, null);
    return listOf(value, where, length).map((x) => real(x, where));
  }

  function table(value, where, rows, columns, infinite = null) {
    if (value instanceof DoubleTable) return requireDoubles(value, where, infinite);
    return listOf(value, where, rows).map((row) =>
      listOf(row, where, columns).map((x) => real(x, where, infinite)),
    );
  }

  /** Values of Reals, lists of Reals, and so on. */
  function valuesOf(numbers) {
    if (numbers instanceof DoubleList) return numbers;
    return Array.isArray(numbers) ? numbers.map(valuesOf) : numbers.value;
  }

  /** @param {function(function(number): number): boolean} holds - Of the sign of x - k for integers k. */
  function requireAll(numbers, where, what, holds) {
    if (numbers instanceof DoubleList) {
      for (const x of numbers.values) {
        // The difference of doubles has the right sign: it is rounded to zero where they are equal.
        if (!holds((k) => x - k)) throw malformed(`${where} must be ${what}, got ${x}`);
      }
      return numbers;
    }
    numbers.flat().forEach((x) => {
      if (holds((k) => x.value.compare(Rational.of(k)))) return;
      throw malformed(`${where} must be ${what}, got ${x.text}`);
    });
    return numbers;
  }

  const isPositive = (from) => from(0) > 0;
  const isNotNegative = (from) => from(0) >= 0;

  /** JSON with sorted keys and no spaces, in ASCII: Reals by their text, other things as they are. */
  function canonicalText(value) {
    if (value instanceof Real) return `"${value.text}"`;
    if (typeof value === "string") return asciiString(value);
    if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
    if (value instanceof Edges) {
      return `[${value.head.map((i, e) => `[${i},${value.tail[e]}]`).join(",")}]`;
    }
    if (value instanceof Map) {
      const keys = [...value.keys()].sort();
      return `{${keys.map((k) => `${asciiString(k)}:${canonicalText(value.get(k))}`).join(",")}}`;
    }
    return String(value); // an integer
  }

  function asciiString(text) {
    return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (c) => {
      return `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
    });
  }

  /** Kinds of terms with data rows, and the numbers that stand beside y. */
  const ROW_KINDS = {
    squared: null,
    huber: "delta",
    pseudohuber: "delta",
    absolute: null,
    quantile: "level",
    hinge: null,
    logistic: null,
    poisson: null,
  };
  /** Kind of terms whose rows have a score for each of K classes. */
  const CLASS_KIND = "multinomial";
  /** Kinds that may have weights: all with data rows, and points. */
  const isWeighable = (kind) =>
    Object.hasOwn(ROW_KINDS, kind) || kind === "point" || kind === CLASS_KIND;
  /** Kinds of terms at nodes, and their keys. */
  const NODE_KINDS = {
    point: ["a"],
    ridge: ["mu"],
    l1: ["kappa"],
    box: ["lower", "upper"],
    simplex: ["total"],
    opaque: ["name"],
  };

  /**
   * A problem, read and validated.
   * @typedef {object} Problem
   * @property {number} n - Nodes.
   * @property {number} d - Dimension.
   * @property {Edges} edges
   * @property {Capacities} capacities - c_e = lam A_e.
   * @property {Rational[]|DoubleList} weights
   * @property {Rational} lam
   * @property {{kind: string, Q: ?Rational[][], p: ?Rational}} penalty - With p-norms that are l1, l2 or linf by these names.
   * @property {object[]} terms
   * @property {?string} noRule - Why nothing can be proved, if so.
   * @property {Map} canonical - What is hashed.
   */

  /** Lists of nodes: plain, or Uint32Array. */
  class Edges {
    constructor(head, tail) {
      this.head = head;
      this.tail = tail;
      this.length = head.length;
    }
  }

  class Capacities {
    constructor(weights, lam) {
      this.weights = weights;
      this.lam = lam;
    }

    at(e) {
      return this.weights.at(e).mul(this.lam);
    }
  }

  /** @returns {Problem} */
  function readProblem(value) {
    const keys = ["schema", "n_nodes", "dim", "edges", "weights", "lam", "penalty", "terms"];
    const data = objectWith(value, "data", keys, ["nodes"]);
    if (data.get("schema") !== "gtv-problem/1") {
      throw malformed(`data.schema must be "gtv-problem/1", got ${shown(data.get("schema"))}`);
    }
    const n = integerIn(data.get("n_nodes"), "n_nodes", 1, MOST);
    const d = integerIn(data.get("dim"), "dim", 1, MOST);
    const edges = readEdges(data.get("edges"), n);
    const weights = reals(data.get("weights"), "weights", edges.length);
    const lam = real(data.get("lam"), "lam");
    requireAll(weights, "weights", "positive", isPositive);
    requireAll([lam], "lam", "positive", isPositive);
    const penalty = readPenalty(data.get("penalty"), d);
    const terms = listOf(data.get("terms"), "terms").map((t, k) =>
      readTerm(t, `terms[${k}]`, n, d),
    );
    const canonical = new Map(data);
    canonical.set("n_nodes", n).set("dim", d).set("edges", edges).set("weights", weights);
    canonical.set("lam", lam).set("penalty", penalty.canonical);
    canonical.set("terms", terms.map((t) => t.canonical)); // prettier-ignore
    if (data.has("nodes")) canonical.set("nodes", readLabels(data.get("nodes"), n));
    const opaque = terms.find((t) => t.kind === "opaque");
    return {
      n,
      d,
      edges,
      weights: valuesOf(weights),
      lam: lam.value,
      capacities: new Capacities(valuesOf(weights), lam.value),
      penalty,
      terms,
      noRule: opaque ? `no exact rule for the loss ${shown(opaque.name)}` : penalty.noRule,
      canonical,
    };
  }

  /** @returns {Edges} */
  function readEdges(value, n) {
    const edges = value instanceof Edges ? value : edgesOfJson(value, n);
    spend(2 * edges.length);
    let [head, tail] = [-1, -1];
    for (let e = 0; e < edges.length; e += 1) {
      const i = edges.head[e];
      const j = edges.tail[e];
      if (i >= j || j >= n || i < head || (i === head && j <= tail)) {
        throw malformed(`edge ${e} [${i}, ${j}]: needs head < tail, sorted, no duplicates`);
      }
      head = i;
      tail = j;
    }
    return edges;
  }

  function edgesOfJson(value, n) {
    const edges = [[], []];
    listOf(value, "edges").forEach((pair, e) => {
      const where = `edge ${e}`;
      listOf(pair, where, 2).forEach((x, k) => edges[k].push(integerIn(x, where, 0, n)));
    });
    return new Edges(...edges);
  }

  function readLabels(value, n) {
    const labels = listOf(value, "nodes", n).map((label) => {
      if (typeof label === "string") return label;
      const found = label instanceof JsonNumber && label.isInteger ? BigInt(label.text) : null;
      if (found === null || found < LEAST_LABEL || found >= LABEL_LIMIT) {
        throw malformed(`nodes: expected a text or an integer of 64 bits, got ${shown(label)}`);
      }
      return found;
    });
    if (new Set(labels).size < n) throw malformed("nodes: labels must be distinct");
    return labels;
  }

  function readPenalty(value, d) {
    const kind = value instanceof Map ? value.get("kind") : null;
    const canonical = new Map([["kind", kind]]);
    const penalty = { kind, canonical, noRule: null, Q: null, p: null };
    if (kind === "l1" || kind === "l2" || kind === "linf" || kind === "squared") {
      objectWith(value, "penalty", ["kind"]);
    } else if (kind === "quadratic") {
      const Q = table(objectWith(value, "penalty", ["kind", "Q"]).get("Q"), "penalty.Q", d, d);
      canonical.set("Q", Q);
      penalty.Q = valuesOf(Q);
      requireSymmetric(penalty.Q);
    } else if (kind === "pnorm") {
      const p = real(objectWith(value, "penalty", ["kind", "p"]).get("p"), "penalty.p", "inf");
      canonical.set("p", p);
      penalty.kind = pnormKind(p, d);
      penalty.p = p.value;
    } else if (kind === "opaque") {
      const name = objectWith(value, "penalty", ["kind", "name"]).get("name");
      canonical.set("name", textOf(name, "penalty.name"));
      penalty.noRule = `no exact rule for the penalty ${shown(name)}`;
    } else {
      throw malformed(`penalty: unknown kind ${shown(kind)}`);
    }
    return penalty;
  }

  function requireSymmetric(Q) {
    Q.forEach((row, i) =>
      row.forEach((x, j) => {
        if (!x.equals(Q[j][i])) throw malformed("penalty.Q must be symmetric");
      }),
    );
  }

  /** The norm among l1, l2 and linf that a p-norm is, if it is one: all are |v| if d = 1. */
  function pnormKind(p, d) {
    if (p.value === Infinity) return "linf";
    if (p.value.below(ONE)) throw malformed(`penalty.p must be at least 1, got ${p.text}`);
    if (p.value.equals(ONE) || d === 1) return "l1";
    return p.value.equals(Rational.of(2)) ? "l2" : "pnorm";
  }

  function textOf(value, where) {
    if (typeof value !== "string") throw malformed(`${where} must be a text, got ${shown(value)}`);
    return value;
  }

  function readTerm(value, where, n, d) {
    const kind = value instanceof Map ? value.get("kind") : null;
    if (typeof kind === "string" && Object.hasOwn(ROW_KINDS, kind)) {
      return readRows(value, where, n, d);
    }
    if (kind === CLASS_KIND) return readClassRows(value, where, n, d);
    if (typeof kind === "string" && Object.hasOwn(NODE_KINDS, kind)) {
      return readNodeTerm(value, where, n, d);
    }
    throw malformed(`${where}: unknown kind ${shown(kind)}`);
  }

  /** @returns {number[]|Uint32Array} */
  function readNodes(value, where, n, strictly) {
    const nodes =
      value instanceof Uint32Array
        ? value
        : listOf(value, `${where}.node`).map((x) => integerIn(x, `${where}.node`, 0, n));
    spend(nodes.length);
    let last = -1;
    for (const i of nodes) {
      if (i < last || i >= n || (strictly && i === last)) {
        throw malformed(`${where}.node must be increasing, below ${n}`);
      }
      last = i;
    }
    return nodes;
  }

  /** For each row of a term the number of rows of its node, the nodes being sorted. */
  class RowCounts {
    constructor(node) {
      this.counts = new Uint32Array(node.length);
      for (let from = 0, to = 0; from < node.length; from = to) {
        while (to < node.length && node[to] === node[from]) to += 1;
        this.counts.fill(to - from, from, to);
      }
    }

    at(k) {
      return Rational.of(this.counts[k]);
    }
  }

  /** What is in the place of m where a term has weights: their inverses. */
  class InverseWeights {
    constructor(weights) {
      this.weights = weights;
    }

    at(k) {
      return this.weights.at(k).inverse();
    }
  }

  /** Read the weights of a term of k entries, if it has some, into `term.weight`. */
  function readWeights(value, where, k, term) {
    if (!value.has("weight")) return;
    const weights = reals(value.get("weight"), `${where}.weight`, k);
    requireAll(weights, `${where}.weight`, "positive", isPositive);
    term.canonical.set("weight", weights);
    term.weight = valuesOf(weights);
  }

  function readRows(value, where, n, d) {
    const kind = value.get("kind");
    const beside = ROW_KINDS[kind];
    objectWith(value, where, ["kind", "node", "X", "y", ...(beside ? [beside] : [])], ["weight"]);
    const node = readNodes(value.get("node"), where, n, false);
    const X = table(value.get("X"), `${where}.X`, node.length, d);
    const y = reals(value.get("y"), `${where}.y`, node.length);
    const canonical = new Map([["kind", kind], ["node", node], ["X", X], ["y", y]]); // prettier-ignore
    const term = { kind, rows: true, node, X: valuesOf(X), y: valuesOf(y), canonical };
    readWeights(value, where, node.length, term);
    term.m = term.weight ? new InverseWeights(term.weight) : new RowCounts(node);
    requireTargets(kind, y, where);
    if (beside) {
      const numbers = reals(value.get(beside), `${where}.${beside}`, node.length);
      canonical.set(beside, numbers);
      requireAll(numbers, `${where}.${beside}`, "positive", isPositive);
      if (beside === "level") {
        requireAll(numbers, `${where}.level`, "below 1", (from) => from(1) < 0);
      }
      term[beside] = valuesOf(numbers);
    }
    return term;
  }

  /** Rows of p features, d = p K for K >= 2 classes, of which y says one. */
  function readClassRows(value, where, n, d) {
    objectWith(value, where, ["kind", "node", "X", "y"], ["weight"]);
    const node = readNodes(value.get("node"), where, n, false);
    const rows = listOf(value.get("X"), `${where}.X`, node.length);
    const p = rows.length > 0 ? listOf(rows[0], `${where}.X`).length : d;
    if (rows.length > 0 && (p === 0 || d % p !== 0 || d < 2 * p)) {
      throw malformed(`${where}.X must have p columns with d = p K, K >= 2, got ${p}`);
    }
    const X = table(rows, `${where}.X`, node.length, p);
    const y = reals(value.get("y"), `${where}.y`, node.length);
    const classes = d / p;
    const own = y.map((x) => {
      const k = x.value.floor(0);
      if (!x.value.equals(new Rational(k)) || k < 0n || k >= BigInt(classes)) {
        throw malformed(`${where}.y must be a class below ${classes}, got ${x.text}`);
      }
      return Number(k);
    });
    const canonical = new Map([["kind", CLASS_KIND], ["node", node], ["X", X], ["y", y]]); // prettier-ignore
    const term = { kind: CLASS_KIND, rows: true, classes, own, node, X: valuesOf(X), canonical };
    readWeights(value, where, node.length, term);
    term.m = term.weight ? new InverseWeights(term.weight) : new RowCounts(node);
    return term;
  }

  function requireTargets(kind, y, where) {
    if (kind === "hinge") {
      requireAll(y, `${where}.y`, "-1 or 1", (from) => from(1) === 0 || from(-1) === 0);
    } else if (kind === "logistic") {
      requireAll(y, `${where}.y`, "0 or 1", (from) => from(0) === 0 || from(1) === 0);
    } else if (kind === "poisson") {
      requireAll(y, `${where}.y`, "at least 0", isNotNegative);
    }
  }

  function readNodeTerm(value, where, n, d) {
    const kind = value.get("kind");
    const optional = isWeighable(kind) ? ["weight"] : [];
    objectWith(value, where, ["kind", "node", ...NODE_KINDS[kind]], optional);
    const node = readNodes(value.get("node"), where, n, true);
    const canonical = new Map([["kind", kind], ["node", node]]); // prettier-ignore
    const term = { kind, rows: false, node, canonical };
    for (const key of NODE_KINDS[kind]) {
      const found = readParameter(value.get(key), key, `${where}.${key}`, node.length, d);
      canonical.set(key, found);
      term[key] = key === "name" ? found : valuesOf(found);
    }
    readWeights(value, where, node.length, term);
    if (kind === "box") requireOrder(term, where);
    return term;
  }

  function readParameter(value, key, where, k, d) {
    if (key === "name") return textOf(value, where);
    if (key === "a") return table(value, where, k, d);
    if (key === "lower") return table(value, where, k, d, "-inf");
    if (key === "upper") return table(value, where, k, d, "inf");
    if (key === "total") return requireAll(reals(value, where, k), where, "positive", isPositive);
    // mu and kappa: one positive number a node, or one that is not negative for each coordinate.
    const isTable = value instanceof DoubleTable;
    if (isTable || (Array.isArray(value) && value.some((x) => Array.isArray(x)))) {
      return requireAll(table(value, where, k, d), where, "at least 0", isNotNegative);
    }
    return requireAll(reals(value, where, k), where, "positive", isPositive);
  }

  function requireOrder(term, where) {
    for (let k = 0; k < term.node.length; k += 1) {
      const high = term.upper.at(k);
      term.lower.at(k).forEach((low, j) => {
        if (low !== -Infinity && high[j] !== Infinity && low.above(high[j])) {
          throw malformed(`${where}: lower is above upper`);
        }
      });
    }
  }

  /** A number of `mu` or `kappa` at entry k of a term, coordinate j. */
  function coefficient(list, k, j) {
    const found = list.at(k);
    return Array.isArray(found) ? found[j] : found;
  }

  // ------------------------------------------------------------------------------------------
  // Witness numbers: rationals, never rounded
  // ------------------------------------------------------------------------------------------

  const HEX = /^(-?)0x([0-9a-f]+)(?:\.([0-9a-f]+))?p([+-]?[0-9]+)$/;
  const RATIO = /^(-?)0x([0-9a-f]+)\/0x([0-9a-f]+)$/;
  const LONGEST_NUMBER = 131072;
  const LARGEST_POWER = 20000;

  /** @returns {Rational} */
  function witness(value) {
    spend(8);
    if (value instanceof JsonNumber) {
      spend(value.text.length >> 2);
      if (value.isInteger) return new Rational(BigInt(value.text));
      const x = doubleOf(value.text);
      if (Number.isFinite(x)) return Rational.double(x);
    }
    if (typeof value !== "string") throw malformed(`not a finite number: ${shown(value)}`);
    if (value.length > LONGEST_NUMBER) {
      throw malformed(`more than ${LONGEST_NUMBER} characters in the number ${shown(value)}`);
    }
    spend(value.length >> 2);
    return hexWitness(value);
  }

  function hexWitness(text) {
    const ratio = RATIO.exec(text);
    if (ratio !== null) {
      const d = BigInt(`0x${ratio[3]}`);
      if (d === 0n) throw malformed(`not a finite number: ${shown(text)}`);
      const n = BigInt(`0x${ratio[2]}`);
      return Rational.ratio(ratio[1] ? -n : n, d);
    }
    const found = HEX.exec(text);
    if (found === null) throw malformed(`not a finite number: ${shown(text)}`);
    const [, sign, whole, fraction = "", exponent] = found;
    const e = Number(exponent) - 4 * fraction.length;
    if (!(Math.abs(e) <= LARGEST_POWER)) throw malformed(`exponent out of range in ${shown(text)}`);
    const n = BigInt(`0x${whole}${fraction}`);
    return new Rational(sign ? -n : n, e);
  }

  function witnesses(value, where, length) {
    if (value instanceof ReadRows) return value.rows;
    if (value instanceof ReadList) return value; // of the right shape
    return listOf(value, where, length).map(witness);
  }

  /** Numbers or rows that are read already, made by `at` where they are needed. */
  class ReadList {}

  /** The same as a list. */
  class ReadRows {
    constructor(rows) {
      this.rows = rows;
    }
  }

  /** @returns {Rational[][]|ReadList} of any number of rows, if none is given. */
  function witnessTable(value, where, rows, columns) {
    if (value instanceof ReadRows) return value.rows;
    if (value instanceof ReadList) return value;
    return listOf(value, where, rows).map((row) => witnesses(row, where, columns));
  }

  // ------------------------------------------------------------------------------------------
  // The objective at a point, from both sides
  // ------------------------------------------------------------------------------------------

  class Enclosure {
    constructor() {
      this.low = new OneSidedSum("lower");
      this.high = new OneSidedSum("upper");
    }

    add(q) {
      this.low.add(q);
      this.high.add(q);
    }

    /** Add factor (>= 0) times what lies between the two bounds. */
    addBetween({ lower, upper }, factor) {
      this.low.add(lower.mul(factor));
      this.high.add(upper.mul(factor));
    }
  }

  /** Loss of one data row, without 1/m: a Rational, or what it lies between. */
  const ROW_LOSSES = {
    squared: (z, y) => z.sub(y).square(),
    huber: (z, y, delta) => {
      const size = z.sub(y).abs();
      if (!size.above(delta)) return size.square();
      return delta.mul(size.times(2).sub(delta));
    },
    pseudohuber: (z, y, delta) => {
      const { lower, upper } = rootOf(delta.square().add(z.sub(y).square()));
      return { lower: delta.mul(lower.sub(delta)), upper: delta.mul(upper.sub(delta)) };
    },
    absolute: (z, y) => z.sub(y).abs(),
    quantile: (z, y, q) => larger(q.mul(y.sub(z)), q.sub(ONE).mul(y.sub(z))),
    hinge: (z, y) => larger(ZERO, ONE.sub(y.mul(z))),
    logistic: (z, y) => {
      const { lower, upper } = softplusOf(z);
      return { lower: lower.sub(y.mul(z)), upper: upper.sub(y.mul(z)) };
    },
    poisson: (z, y) => {
      const { lower, upper } = exponentialOf(z);
      return { lower: lower.sub(y.mul(z)), upper: upper.sub(y.mul(z)) };
    },
  };

  /** Enclosure of ln(sum of exp z_k) - z_y of a row with several classes, at w_i = v. */
  function classLoss(term, k, v) {
    const x = term.X.at(k);
    const scores = [];
    for (let c = 0; c < term.classes; c += 1) {
      scores.push(sum(x.map((a, j) => a.mul(v[j * term.classes + c]))));
    }
    const most = scores.reduce(larger);
    const parts = scores.map((z) => exponentialOf(z.sub(most)));
    // One of the parts is 1, whatever its enclosure.
    const low = larger(sum(parts.map((part) => part.lower)), ONE);
    const base = most.sub(scores[term.own[k]]);
    const lower = base.add(larger(logarithmOf(low).lower, ZERO));
    return { lower, upper: base.add(logarithmOf(sum(parts.map((part) => part.upper))).upper) };
  }

  /** Multipliers of all classes of a row: those given, and at its own what makes them add up to 0. */
  function classSlopes(term, k, r) {
    const own = term.own[k];
    return [...r.slice(0, own), sum(r).neg(), ...r.slice(own)];
  }

  /** Conjugate of a row with several classes, from above. */
  function classConjugate(term, k, r) {
    const m = term.m.at(k);
    const p = r.map((x) => x.mul(m));
    p.push(ONE.sub(sum(p)));
    requireInside(p.every((x) => x.sign >= 0));
    return sum(p.map(entropyAbove)).div(m);
  }

  const minus = (a, b) => a.map((x, j) => x.sub(b[j]));

  /** x times the weight of entry k of a term at nodes, where it has one. */
  const weighted = (term, k, x) => (term.weight ? x.mul(term.weight.at(k)) : x);

  /** Losses of terms at nodes that are finite, at entry k with w_i = v. */
  const NODE_LOSSES = {
    point: (term, k, v) => weighted(term, k, sum(minus(v, term.a.at(k)).map((x) => x.square()))),
    ridge: (term, k, v) => sum(v.map((x, j) => coefficient(term.mu, k, j).mul(x.square()).half())),
    l1: (term, k, v) => sum(v.map((x, j) => coefficient(term.kappa, k, j).mul(x.abs()))),
    box: () => ZERO,
    simplex: () => ZERO,
  };

  /** @returns {?string} why w is not feasible, if it is not. */
  function infeasibility(problem, w) {
    for (const term of problem.terms) {
      if (term.kind !== "box" && term.kind !== "simplex") continue;
      for (let k = 0; k < term.node.length; k += 1) {
        const i = term.node[k];
        const v = w.at(i);
        if (term.kind === "box") {
          const [low, high] = [term.lower.at(k), term.upper.at(k)];
          const outside = v.findIndex((x, j) => !isWithin(x, low[j], high[j]));
          if (outside >= 0) return `node ${i} is outside its box in coordinate ${outside}`;
        } else if (v.some((x) => x.sign < 0) || !sum(v).equals(term.total.at(k))) {
          return `node ${i} is not on its simplex`;
        }
      }
    }
    return null;
  }

  function isWithin(x, low, high) {
    return (low === -Infinity || !x.below(low)) && (high === Infinity || !x.above(high));
  }

  /**
   * Enclose P(w) of a feasible w.
   * @param {Problem} problem
   * @param {Rational[][]|ReadList} w
   * @returns {{lower: Rational, upper: Rational}}
   */
  function objective(problem, w) {
    const total = new Enclosure();
    for (const term of problem.terms) addLosses(total, term, w);
    const { length, head, tail } = problem.edges;
    let v = null;
    for (let e = 0; e < length; e += 1) {
      if (e === 0 || head[e] !== head[e - 1]) v = w.at(head[e]); // edges are sorted by head
      const z = minus(v, w.at(tail[e]));
      addVariation(total, problem, z, problem.capacities.at(e));
    }
    return { lower: total.low.total(), upper: total.high.total() };
  }

  function addLosses(total, term, w) {
    const beside = ROW_KINDS[term.kind];
    for (let k = 0; k < term.node.length; k += 1) {
      const v = w.at(term.node[k]);
      if (!term.rows) {
        total.add(NODE_LOSSES[term.kind](term, k, v));
        continue;
      }
      if (term.classes) {
        total.addBetween(classLoss(term, k, v), term.m.at(k).inverse());
        continue;
      }
      const z = dot(term.X.at(k), v);
      if (term.kind === "poisson" && z.above(LARGEST_EXPONENT)) {
        throw unproved(`exp(x.w) at node ${term.node[k]} is too large to be enclosed`);
      }
      const loss = ROW_LOSSES[term.kind](z, term.y.at(k), beside ? term[beside].at(k) : null);
      const share = term.m.at(k).inverse();
      if (loss instanceof Rational) total.add(loss.mul(share));
      else total.addBetween(loss, share);
    }
  }

  /** ||v||_p from both sides, as t (sum of (|v_j|/t)^p)^(1/p) with t the largest |v_j|. */
  function powerNorm(v, p) {
    const sizes = v.map((x) => x.abs());
    const most = sizes.reduce(larger);
    if (most.n === 0n) return exactly(ZERO);
    const { lower, upper } = sumOfPowers(sizes.map((x) => x.div(most)), p);
    return {
      lower: most.mul(powerOf(larger(lower, ONE), p.inverse()).lower),
      upper: most.mul(powerOf(upper, p.inverse()).upper),
    };
  }

  /** Norms as bounds: exact but for l2. */
  const NORM_OF = {
    l1: (v) => exactly(sum(v.map((x) => x.abs()))),
    l2: (v) => rootOf(dot(v, v)),
    linf: (v) => exactly(v.map((x) => x.abs()).reduce(larger)),
  };
  const DUAL_NORM = { l1: "linf", l2: "l2", linf: "l1" };
  const exactly = (q) => ({ lower: q, upper: q });

  function addVariation(total, problem, z, c) {
    const { kind, Q, p } = problem.penalty;
    if (kind === "pnorm") total.addBetween(powerNorm(z, p), c);
    else if (kind === "squared") total.add(c.mul(dot(z, z)).half());
    else if (kind === "quadratic")
      total.add(
        c
          .mul(
            dot(
              z,
              Q.map((row) => dot(row, z)),
            ),
          )
          .half(),
      );
    else total.addBetween(NORM_OF[kind](z), c);
  }

  // ------------------------------------------------------------------------------------------
  // The dual witness: conservation, domains, and the lower bound
  // ------------------------------------------------------------------------------------------

  /** Conjugates of data rows, from above: h*(r), or an error where r is outside the domain. */
  const ROW_CONJUGATES = {
    squared: (r, m, y) => r.mul(y).add(m.mul(r.square()).half().half()),
    huber: (r, m, y, delta) => {
      requireInside(!m.mul(r).abs().above(delta.times(2)));
      return ROW_CONJUGATES.squared(r, m, y);
    },
    pseudohuber: (r, m, y, delta) => {
      const slope = m.mul(r);
      requireInside(!slope.abs().above(delta));
      // The root is taken off, so that its lower bound gives the upper bound of the conjugate.
      const root = rootOf(delta.square().sub(slope.square())).lower;
      return r.mul(y).add(delta.div(m).mul(delta.sub(root)));
    },
    absolute: (r, m, y) => {
      requireInside(!m.mul(r).abs().above(ONE));
      return r.mul(y);
    },
    quantile: (r, m, y, q) => {
      const slope = m.mul(r);
      requireInside(!slope.below(q.neg()) && !slope.above(ONE.sub(q)));
      return r.mul(y);
    },
    hinge: (r, m, y) => {
      const slope = m.mul(r).mul(y); // between -1 and 0 for both labels
      requireInside(slope.sign <= 0 && !slope.below(ONE.neg()));
      return r.mul(y);
    },
    logistic: (r, m, y) => {
      const p = m.mul(r).add(y);
      requireInside(p.sign >= 0 && !p.above(ONE));
      return entropyAbove(p)
        .add(entropyAbove(ONE.sub(p)))
        .div(m);
    },
    poisson: (r, m, y) => {
      const p = m.mul(r).add(y);
      requireInside(p.sign >= 0);
      return entropyAbove(p).sub(p).div(m);
    },
  };

  /** Conjugates of terms at nodes, at entry k with r a vector. */
  const NODE_CONJUGATES = {
    point: (term, k, r) => {
      const quarter = dot(r, r).half().half();
      return dot(r, term.a.at(k)).add(term.weight ? quarter.div(term.weight.at(k)) : quarter);
    },
    ridge: (term, k, r) =>
      sum(
        r.map((x, j) => {
          const mu = coefficient(term.mu, k, j);
          if (mu.n !== 0n) return x.square().div(mu.times(2));
          requireInside(x.n === 0n);
          return ZERO;
        }),
      ),
    l1: (term, k, r) => {
      r.forEach((x, j) => requireInside(!x.abs().above(coefficient(term.kappa, k, j))));
      return ZERO;
    },
    box: (term, k, r) => {
      const [low, high] = [term.lower.at(k), term.upper.at(k)];
      return sum(r.map((x, j) => supportOfInterval(x, low[j], high[j])));
    },
    simplex: (term, k, r) => term.total.at(k).mul(r.reduce(larger)),
  };

  function supportOfInterval(x, low, high) {
    if (x.sign === 0) return ZERO;
    const end = x.sign > 0 ? high : low;
    requireInside(end instanceof Rational);
    return end.mul(x);
  }

  function requireInside(holds) {
    if (!holds) throw falseDocument("a multiplier is outside its domain");
  }

  /**
   * The dual witness, read.
   * @typedef {object} Dual
   * @property {Rational[][]|ReadList} u
   * @property {Array} r - One list a term.
   * @property {OneSidedSum} conjugates - Of the terms, whose domains r is in.
   * @property {?Map} quadratic - Not read yet.
   */

  /** @returns {?Dual} */
  function readDual(value, problem) {
    if (value === null || value === undefined) return null;
    const optional = problem.penalty.kind === "quadratic" ? ["quadratic"] : [];
    const dual = objectWith(value, "dual", ["u", "r"], optional);
    const { d, edges, terms } = problem;
    const u = witnessTable(dual.get("u"), "dual.u", edges.length, d);
    const conjugates = new OneSidedSum("upper");
    const r = listOf(dual.get("r"), "dual.r", terms.length).map((list, t) => {
      const term = terms[t];
      const columns = term.classes ? term.classes - 1 : d;
      const found =
        term.rows && !term.classes
          ? witnesses(list, `dual.r[${t}]`, term.node.length)
          : witnessTable(list, `dual.r[${t}]`, term.node.length, columns);
      for (let k = 0; k < term.node.length; k += 1) {
        conjugates.add(conjugateAt(term, k, found.at(k)));
      }
      return found;
    });
    return { u, r, conjugates, quadratic: dual.get("quadratic") ?? null };
  }

  function readQuadratic(value, { d, edges }) {
    const found = objectWith(value, "dual.quadratic", ["root", "null_space", "x"]);
    return {
      root: witnessTable(found.get("root"), "dual.quadratic.root", null, d),
      nullSpace: witnessTable(found.get("null_space"), "dual.quadratic.null_space", null, d),
      x: witnessTable(found.get("x"), "dual.quadratic.x", edges.length, d),
    };
  }

  /** At every node and coordinate: what the blocks and the flow add up to, which must be zero. */
  function requireConservation(problem, { u, r }) {
    const { n, d, terms, edges } = problem;
    const arriving = edgesByTail(edges, n);
    const next = terms.map(() => 0); // nodes of terms are sorted, and heads are
    let from = 0;
    for (let i = 0; i < n; i += 1) {
      const total = new Array(d).fill(ZERO);
      terms.forEach((term, t) => {
        for (; term.node[next[t]] === i; next[t] += 1) addBlock(total, term, next[t], r[t]);
      });
      let to = from;
      while (edges.head[to] === i) to += 1;
      const tails = arriving.order.subarray(arriving.starts[i], arriving.starts[i + 1]);
      addFlow(total, u, from, to, tails);
      from = to;
      const j = total.findIndex((x) => x.n !== 0n);
      if (j >= 0) throw falseDocument(`the flow is not conserved at node ${i}, coordinate ${j}`);
    }
  }

  /** Edges in the order of their tails, and where those of each node start. */
  function edgesByTail({ length, tail }, n) {
    spend(n + length);
    const starts = new Uint32Array(n + 1);
    for (let e = 0; e < length; e += 1) starts[tail[e]] += 1;
    for (let i = 1; i <= n; i += 1) starts[i] += starts[i - 1];
    const order = new Uint32Array(length);
    // Each start is at the end of its node, and comes down with every edge.
    for (let e = length - 1; e >= 0; e -= 1) order[(starts[tail[e]] -= 1)] = e;
    return { starts, order };
  }

  /** Add B^T r of an entry of a term. */
  function addBlock(total, term, k, r) {
    const found = r.at(k);
    if (term.classes) {
      const slopes = classSlopes(term, k, found);
      term.X.at(k).forEach((x, j) => {
        slopes.forEach((s, c) => {
          const at = j * term.classes + c;
          total[at] = total[at].add(x.mul(s));
        });
      });
      return;
    }
    const row = term.rows ? term.X.at(k).map((x) => x.mul(found)) : found;
    row.forEach((x, j) => {
      total[j] = total[j].add(x);
    });
  }

  /** Add the flow of edges from `from` up to `to`, without `to`, less that of `tails`. */
  function addFlow(total, u, from, to, tails) {
    if (u instanceof LayeredTable) {
      u.addFlow(total, from, to, tails);
      return;
    }
    const add = (e, sign) => {
      u[e].forEach((x, j) => {
        total[j] = total[j].add(sign < 0 ? x.neg() : x);
      });
    };
    for (let e = from; e < to; e += 1) add(e, 1);
    for (const e of tails) add(e, -1);
  }

  /** @returns {Rational} a lower bound on the minimum of P. */
  function lowerBound(problem, dual) {
    requireConservation(problem, dual);
    const { conjugates } = dual;
    const { kind } = problem.penalty;
    if (kind === "quadratic") addQuadraticConjugates(conjugates, problem, dual);
    else {
      for (let e = 0; e < problem.edges.length; e += 1) {
        const u = dual.u.at(e);
        const c = problem.capacities.at(e);
        if (kind === "squared") conjugates.add(dot(u, u).div(c.times(2)));
        else requireCapacity(problem.penalty, u, c, e);
      }
    }
    return conjugates.total().neg();
  }

  function conjugateAt(term, k, r) {
    if (term.classes) return classConjugate(term, k, r);
    if (!term.rows) return NODE_CONJUGATES[term.kind](term, k, r);
    const beside = ROW_KINDS[term.kind];
    const number = beside ? term[beside].at(k) : null;
    return ROW_CONJUGATES[term.kind](r, term.m.at(k), term.y.at(k), number);
  }

  function requireCapacity({ kind, p }, u, c, e) {
    let holds;
    if (kind === "pnorm") holds = isWithinPowers(u, c, p, e);
    else if (kind === "l1") holds = u.every((x) => !x.abs().above(c));
    else if (kind === "l2") holds = !dot(u, u).above(c.square());
    else holds = !sum(u.map((x) => x.abs())).above(c);
    if (!holds) throw falseDocument(`the flow on edge ${e} is above its capacity`);
  }

  /** Whether ||u||_q <= c with q = p/(p - 1), which is between the largest |u_j| and their sum. */
  function isWithinPowers(u, c, p, e) {
    const sizes = u.map((x) => x.abs());
    if (!sum(sizes).above(c)) return true;
    if (sizes.some((x) => x.above(c))) return false;
    const q = p.div(p.sub(ONE));
    const { lower, upper } = sumOfPowers(sizes.map((x) => x.div(c)), q);
    if (!upper.above(ONE)) return true;
    if (lower.above(ONE)) return false;
    throw unproved(`the flow on edge ${e} is too close to its capacity for powers to be compared`);
  }

  /** Conjugates of (c/2) z^T Q z from above: what was eliminated is in the witness. */
  function addQuadraticConjugates(conjugates, problem, dual) {
    if (dual.quadratic === null) throw unproved("the dual witness has no `quadratic`");
    const { Q } = problem.penalty;
    const { root, nullSpace, x } = readQuadratic(dual.quadratic, problem);
    for (const n of nullSpace) {
      if (Q.some((row) => dot(row, n).n !== 0n)) throw falseDocument("Q N^T is not zero");
    }
    const mu = rowMargins(plusGram(plusGram(Q, nullSpace, 1), root, -1), -1).reduce(smaller);
    if (mu.sign <= 0) throw falseDocument("Q is not proved to be positive semidefinite");
    for (let e = 0; e < problem.edges.length; e += 1) {
      const u = dual.u.at(e);
      const v = x.at(e);
      if (nullSpace.some((n) => dot(n, u).n !== 0n)) {
        throw falseDocument(`the flow on edge ${e} is not in the range of Q`);
      }
      const s = u.map((value, i) => value.sub(dot(Q[i], v)));
      const above = dot(v, u).add(dot(v, s)).add(dot(s, s).div(mu));
      conjugates.add(above.div(problem.capacities.at(e).times(2)));
    }
  }

  /** H + sign R^T R, symmetric. */
  function plusGram(H, R, sign) {
    return H.map((row, i) =>
      row.map((x, j) => R.reduce((total, v) => total.add(v[i].mul(v[j]).times(sign)), x)),
    );
  }

  /** G_ii plus sign times the sum of the other |G_ij|, for every row: discs of Gershgorin. */
  function rowMargins(G, sign) {
    return G.map((row, i) =>
      row.reduce((total, x, j) => (i === j ? total : total.add(x.abs().times(sign))), row[i]),
    );
  }

  // ------------------------------------------------------------------------------------------
  // Certificates
  // ------------------------------------------------------------------------------------------

  /** @returns {Problem} of a document, the data being in it or given, with the hash that it states. */
  function problemOf(doc, given) {
    const embedded = doc.get("data") ?? null;
    if (embedded === null && given === null) {
      throw unproved("the document does not contain the problem data: pass them");
    }
    const [own, other] = [embedded, given].map((data) => data && readProblem(data));
    const isArrays = doc.has(ARRAYS_HASH);
    const hashOf = (problem) => {
      return isArrays ? arraysHash(problem) : sha256(canonicalText(problem.canonical));
    };
    const hashes = other ? [hashOf(other)] : [];
    if (own) hashes.push(isArrays ? doc.get(ARRAYS_HASH) : hashOf(own));
    if (hashes.some((hash) => hash !== doc.get("sha256"))) {
      throw falseDocument("the SHA-256 of the problem data is not the one stated");
    }
    return own ?? other;
  }

  /** @returns {Map} the claim, with a tolerance that is one: it decides nothing. */
  function readClaim(value) {
    const claim = objectWith(value, "claim", ["rtol", "upper", "lower"]);
    if (witness(claim.get("rtol")).sign < 0) throw malformed("rtol must not be negative");
    return claim;
  }

  /**
   * Check a certificate; what is found goes into `found`, for whatever the verdict is.
   * @param {Map} doc
   * @param {?Map} given - Problem data.
   * @param {Rational} rtol - Of whoever checks.
   * @param {{upper: ?Rational, lower: ?Rational, distanceSquared: ?Rational, warning: string}} found
   */
  function checkCertificate(doc, given, rtol, found) {
    const keys = ["schema", "sha256", "claim", "w"];
    objectWith(doc, "certificate", keys, ["data", "dual", "better", "producer"]);
    const claim = readClaim(doc.get("claim"));
    const problem = problemOf(doc, given);
    const w = witnessTable(doc.get("w"), "w", problem.n, problem.d);
    if (problem.noRule) throw unproved(problem.noRule);
    const dual = readDual(doc.get("dual"), problem);
    const lower = dual && lowerBound(problem, dual);
    const wrong = infeasibility(problem, w);
    if (wrong) {
      found.lower = lower;
      throw new Verdict("REFUTED", "w is not feasible", `${wrong}, where P is infinite`);
    }
    const value = objective(problem, w);
    Object.assign(found, { upper: value.upper, lower, warning: scaleWarning(problem, value) });
    if (lower !== null) found.distanceSquared = squaredDistance(problem, value.upper.sub(lower));
    const better = doc.get("better") ?? null;
    if (better !== null) {
      refuteBy(witnessTable(better, "better", problem.n, problem.d), problem, value, rtol);
    }
    if (lower && lower.above(value.upper)) {
      throw new Verdict("REFUTED", "defect", "the lower bound is above the upper one: report this");
    }
    requireClaim(claim, value, lower);
    if (lower === null) throw unproved("the document has no dual witness");
    const gap = value.upper.sub(lower);
    const allowed = rtol.mul(larger(ONE, value.upper.abs()));
    const size = gap.div(larger(ONE, value.upper.abs()));
    const text = `relative gap ${upward(size)}, rtol ${short(nearest(rtol))}`;
    if (gap.above(allowed)) throw unproved(text, "gap");
    throw new Verdict("CERTIFIED", "certified", text);
  }

  /** Three digits, rounded up. */
  function upward(q) {
    const x = doubleAbove(q);
    if (x === null) return "beyond doubles";
    const [digits, exponent] = x.toExponential(2).split("e");
    const isAbove = Number(`${digits}e${exponent}`) >= x;
    const rounded = isAbove ? digits : (Number(digits) + 0.01).toFixed(2);
    return short(Number(`${rounded}e${exponent}`));
  }

  /** Small numbers with an exponent. */
  function short(x) {
    return x !== 0 && Math.abs(x) < 1e-3 ? x.toExponential() : String(x);
  }

  function refuteBy(better, problem, value, rtol) {
    if (infeasibility(problem, better)) return;
    const { upper } = objective(problem, better);
    // x - rtol max(1, |x|) is least at one of the ends.
    const ends = [value.lower, value.upper].map((x) => x.sub(rtol.mul(larger(ONE, x.abs()))));
    if (upper.below(smaller(...ends))) {
      const by = value.lower.sub(upper);
      const text = `the attached point is better by at least ${doubleBelow(by)}`;
      throw new Verdict("REFUTED", "w is not within rtol", text);
    }
  }

  function requireClaim(claim, value, provedLower) {
    const lower = claim.get("lower");
    if (lower !== null && (provedLower === null || witness(lower).above(provedLower))) {
      throw falseDocument("the claimed lower bound is above what its witness proves");
    }
    const upper = claim.get("upper") === null ? null : witness(claim.get("upper"));
    if (upper && upper.below(value.lower)) {
      throw falseDocument("the claimed upper bound is below P(w)");
    }
    if (upper && upper.below(value.upper)) {
      throw unproved("the claimed upper bound is within the enclosure of P(w)");
    }
  }

  /** Upper bound on ||w - w_hat||^2, where every coordinate of every node has a modulus. */
  function squaredDistance(problem, gap) {
    const terms = problem.terms.filter(({ kind }) => kind === "point" || kind === "ridge");
    const next = terms.map(() => 0);
    let least = null;
    for (let i = 0; i < problem.n; i += 1) {
      const moduli = new Array(problem.d).fill(ZERO);
      terms.forEach((term, t) => {
        const k = next[t];
        if (term.node[k] !== i) return;
        next[t] += 1;
        moduli.forEach((x, j) => {
          const ofPoint = () => weighted(term, k, Rational.of(2));
          moduli[j] = x.add(term.kind === "point" ? ofPoint() : coefficient(term.mu, k, j));
        });
      });
      least = moduli.reduce(smaller, least ?? moduli[0]);
      if (least.sign === 0) return null;
    }
    return gap.times(2).div(least);
  }

  const SMALL = Rational.ratio(1n, 100n);

  /** Where the objective is far below 1, gap / max(1, |P|) says little. */
  function scaleWarning(problem, value) {
    const isSmall = ({ lower, upper }) => upper.below(SMALL) && lower.above(SMALL.neg());
    if (!isSmall(value)) return "";
    const origin = new Array(problem.d).fill(ZERO);
    const zero = { at: () => origin };
    if (infeasibility(problem, zero) || !isSmall(objective(problem, zero))) return "";
    return "the objective is below 1/100 at w and at zero: look at the gap relative to |upper|";
  }

  // ------------------------------------------------------------------------------------------
  // Documents about partitions: is a cluster well-connected?
  // ------------------------------------------------------------------------------------------

  const YES = "well-connected";
  const NO = "not well-connected";
  /** The maximum over sign vectors is found by enumeration up to this dimension. */
  const SIGN_DIMENSION = 8;

  function claimOf(value, where) {
    if (value !== YES && value !== NO) throw malformed(`${where} must be "${YES}" or "${NO}"`);
    return value;
  }

  function checkPartition(doc, given) {
    const keys = ["schema", "sha256", "claim", "clusters"];
    objectWith(doc, "document", keys, ["data", "producer"]);
    const problem = problemOf(doc, given);
    const claim = claimOf(doc.get("claim"), "claim");
    const taken = new Set();
    const heads = listOf(doc.get("clusters"), "clusters").map((value, k) => {
      return readHead(value, `clusters[${k}]`, problem, taken);
    });
    if (!Object.hasOwn(NORM_OF, problem.penalty.kind)) {
      throw unproved("constants are known for the l1, l2 and linf norms only");
    }
    const incident = incidentEdges(problem);
    // One after the other: the first that is not as it should be ends the check.
    heads.forEach((head) => {
      const cluster = readCluster(head, problem);
      checkCluster(cluster, problem, insideOf(cluster, problem, incident));
    });
    const claims = heads.map((head) => head.claim);
    if (claim === NO) {
      if (!claims.includes(NO)) throw falseDocument(`no cluster is claimed ${NO}`);
      throw new Verdict("CERTIFIED", "certified", `a cluster of the partition is ${NO}`);
    }
    if (claims.includes(NO)) throw falseDocument(`a cluster is claimed ${NO}`);
    if (taken.size < problem.n) throw falseDocument("a node is in no cluster");
    throw new Verdict("CERTIFIED", "certified", `every cluster of the partition is ${YES}`);
  }

  /**
   * A witness about one cluster, read.
   * @typedef {object} Cluster
   * @property {string} claim
   * @property {number[]} nodes
   * @property {?Rational} alpha
   * @property {Rational[]} beta
   * @property {Rational[]} delta
   * @property {?Rational[]} center
   * @property {?Rational} modulus
   * @property {object} roots
   */

  /** Its keys, its claim and its nodes. */
  function readHead(value, where, problem, taken) {
    const claim = claimOf(value instanceof Map ? value.get("claim") : null, `${where}.claim`);
    const own = claim === YES ? ["sink", "flow", "scale"] : ["sets", "left_out"];
    const keys = ["claim", "cluster", "alpha", "beta", "delta", "center", "modulus", ...own];
    objectWith(value, where, keys, claim === YES ? ["roots"] : ["roots", "directions"]);
    const nodes = distinctNodes(value.get("cluster"), `${where}.cluster`, (i) => i < problem.n);
    if (!nodes.length) throw malformed(`${where}.cluster is empty`);
    for (const i of nodes) {
      if (taken.has(i)) throw malformed(`${where}.cluster: node ${i} is in two clusters`);
      taken.add(i);
    }
    return { claim, nodes, where, value };
  }

  /** @returns {Cluster} */
  function readCluster(head, problem) {
    const { claim, nodes, value } = head;
    const cluster = { ...head, ...readConstants(value, nodes.length, problem.d) };
    return claim === YES ? { ...cluster, ...readFlow(value, cluster) } : cluster;
  }

  function distinctNodes(value, where, isNode) {
    const seen = new Set();
    for (const x of listOf(value, where)) {
      spend(1);
      const i = integerIn(x, where, 0, MOST);
      if (!isNode(i)) throw malformed(`${where}: ${i} is no node of it`);
      if (seen.has(i)) throw malformed(`${where}: node ${i} occurs twice`);
      seen.add(i);
    }
    return [...seen];
  }

  function readConstants(value, size, d) {
    const constants = (key) => witnesses(value.get(key), key, size).map((x) => notNegative(x, key));
    const orNull = (key, read) => (value.get(key) === null ? null : read(value.get(key)));
    return {
      alpha: orNull("alpha", (x) => positive(witness(x), "alpha")),
      beta: constants("beta"),
      delta: constants("delta"),
      center: orNull("center", (x) => witnesses(x, "center", d)),
      modulus: orNull("modulus", (x) => notNegative(witness(x), "modulus")),
      roots: readRoots(value, size, d),
      directions: readDirections(value, size, d),
    };
  }

  function notNegative(x, where) {
    if (x.sign < 0) throw malformed(`${where} must not be negative`);
    return x;
  }

  function positive(x, where) {
    if (x.sign <= 0) throw malformed(`${where} must be positive`);
    return x;
  }

  function readRoots(value, size, d) {
    if (!value.has("roots")) return { total: null, inverse: null, local: null };
    const roots = objectWith(value.get("roots"), "roots", [], ["total", "inverse", "local"]);
    const optional = (key, read) => {
      const found = roots.get(key) ?? null;
      return found === null ? null : read(found, `roots.${key}`);
    };
    return {
      total: optional("total", (x, where) => witnessTable(x, where, null, d)),
      inverse: optional("inverse", (x, where) => witnessTable(x, where, d, d)),
      local: roots.has("local") ? readLocal(roots.get("local"), size, d) : null,
    };
  }

  function readLocal(value, size, d) {
    return listOf(value, "roots.local", size).map((x) => {
      return x === null ? null : witnessTable(x, "roots.local", null, d);
    });
  }

  function readDirections(value, size, d) {
    if (!value.has("directions")) return { alpha: null, beta: null };
    const found = objectWith(value.get("directions"), "directions", [], ["alpha", "beta"]);
    const vector = (x, where) => {
      const v = witnesses(x, where, d);
      if (v.every((c) => c.n === 0n)) throw malformed(`${where} is zero`);
      return v;
    };
    const alpha = found.get("alpha") ?? null;
    return {
      alpha: alpha === null ? null : vector(alpha, "directions.alpha"),
      beta: found.has("beta")
        ? listOf(found.get("beta"), "directions.beta", size).map((x) =>
            x === null ? null : vector(x, "directions.beta"),
          )
        : null,
    };
  }

  function readFlow(value, { nodes }) {
    const sink = integerIn(value.get("sink"), "sink", 0, MOST);
    if (!nodes.includes(sink)) throw malformed(`sink: node ${sink} is not in the cluster`);
    const flow = listOf(value.get("flow"), "flow").map((x) => wholeNumber(x, "flow"));
    const scale = positive(wholeNumber(value.get("scale"), "scale"), "scale");
    return { sink, flow, scale };
  }

  function wholeNumber(value, where) {
    if (value instanceof Rational) return value; // of an array of integers
    if (!(value instanceof JsonNumber && value.isInteger)) {
      throw malformed(`${where}: expected an integer, got ${shown(value)}`);
    }
    spend(value.text.length >> 2);
    return new Rational(BigInt(value.text));
  }

  /** @returns {number[][]} the edges at each node. */
  function incidentEdges({ n, edges }) {
    spend(n);
    const found = Array.from({ length: n }, () => []);
    for (let e = 0; e < edges.length; e += 1) {
      found[edges.head[e]].push(e);
      found[edges.tail[e]].push(e);
    }
    return found;
  }

  /** The edges inside a cluster, in the order of the data, and b_i for each of its nodes. */
  function insideOf({ nodes, claim, flow }, problem, incident) {
    const members = new Set(nodes);
    const boundary = new Map(nodes.map((i) => [i, ZERO]));
    const inside = new Set();
    for (const i of nodes) {
      for (const e of incident[i]) {
        const isInside = members.has(problem.edges.head[e]) && members.has(problem.edges.tail[e]);
        if (isInside) inside.add(e);
        else boundary.set(i, boundary.get(i).add(problem.weights.at(e)));
      }
    }
    const { head, tail } = problem.edges;
    const edges = [...inside]
      .sort((a, b) => a - b)
      .map((e) => ({ i: head[e], j: tail[e], weight: problem.weights.at(e) }));
    if (claim === YES && flow.length !== edges.length) {
      throw malformed(`flow must be a list of length ${edges.length}`);
    }
    return { edges, boundary };
  }

  /** First whether the claim follows from the constants, then whether these are right. */
  function checkCluster(cluster, problem, inside) {
    if (cluster.claim === YES) {
      if (cluster.nodes.length === 1) return;
      requireFlow(cluster, inside, demands(cluster, problem, inside));
      requireUpperConstants(cluster, problem);
    } else {
      requireSets(cluster, inside, demands(cluster, problem, inside));
      requireLowerConstants(cluster, problem);
    }
  }

  /** d_i = b_i + beta_i |dC| / alpha + delta_i / lambda, alpha = null being infinite. */
  function demands({ nodes, alpha, beta, delta }, problem, { boundary }) {
    const total = sum([...boundary.values()]);
    const factor = alpha === null ? ZERO : total.div(alpha);
    return new Map(
      nodes.map((i, k) => {
        const spread = beta[k].mul(factor).add(delta[k].div(problem.lam));
        return [i, boundary.get(i).add(spread)];
      }),
    );
  }

  const falseFlow = (text) => new Verdict("REFUTED", "false flow", text);
  const falseSets = (text) => new Verdict("REFUTED", "false sets", text);
  const falseConstant = (text) => new Verdict("REFUTED", "false constant", text);

  function requireFlow({ nodes, flow, scale, sink }, { edges }, demand) {
    const out = new Map(nodes.map((i) => [i, ZERO]));
    edges.forEach(({ i, j, weight }, e) => {
      if (flow[e].abs().above(weight.mul(scale))) {
        throw falseFlow(`above the capacity of the edge (${i}, ${j})`);
      }
      out.set(i, out.get(i).add(flow[e]));
      out.set(j, out.get(j).sub(flow[e]));
    });
    for (const i of nodes) {
      if (i !== sink && !out.get(i).above(demand.get(i).mul(scale))) {
        throw falseFlow(`node ${i} sends no more than its demand`);
      }
    }
  }

  /** Sets and nodes left out are read here, one after the other. */
  function requireSets({ value, nodes, where }, { edges }, demand) {
    const members = new Set(nodes);
    const isMember = (i) => members.has(i);
    const sets = listOf(value.get("sets"), `${where}.sets`).map((list, k) => {
      const set = new Set(distinctNodes(list, `${where}.sets[${k}]`, isMember));
      if (!set.size || set.size === nodes.length) {
        throw malformed(`${where}.sets[${k}] is empty or the whole cluster`);
      }
      requireCut(set, edges, sum([...set].map((i) => demand.get(i))));
      return set;
    });
    const whole = sum([...demand.values()]);
    const left = distinctNodes(value.get("left_out"), `${where}.left_out`, isMember);
    if (left.length && nodes.length === 1) {
      throw malformed(`${where}.left_out: the rest of a cluster of one node is empty`);
    }
    // The cut of C - {i} is that of {i}.
    for (const i of left) requireCut(new Set([i]), edges, whole.sub(demand.get(i)));
    for (const i of nodes) {
      const isInAll = !left.includes(i) && sets.every((set) => set.has(i));
      if (isInAll) throw falseSets(`node ${i} lies in every one of them`);
    }
  }

  function requireCut(set, edges, demanded) {
    spend(4 * (edges.length + set.size));
    const crossing = edges.filter(({ i, j }) => set.has(i) !== set.has(j));
    if (sum(crossing.map(({ weight }) => weight)).above(demanded)) {
      throw falseSets("one of them does not violate the condition");
    }
  }

  // Constants: alpha, beta and delta against the data, from the side that the claim needs.

  /**
   * Hessians and gradients at v of the losses of a cluster.
   * @returns {{hessians: Rational[][][], gradients: ?Rational[][]}}
   */
  function derivatives({ nodes, center }, problem) {
    const place = new Map(nodes.map((i, k) => [i, k]));
    const { d } = problem;
    spend(nodes.length * d * (d + 1));
    const zeros = () => new Array(d).fill(ZERO);
    const hessians = nodes.map(() => Array.from({ length: d }, zeros));
    const gradients = center && nodes.map(zeros);
    for (const term of problem.terms) {
      term.node.forEach((i, k) => {
        const at = place.get(i);
        if (at === undefined) return;
        const derive = DERIVATIVES[term.kind];
        if (derive === undefined) throw unproved(`no exact rule for the curvature of ${term.kind}`);
        derive(term, k, hessians[at], gradients && gradients[at], center);
      });
    }
    return { hessians, gradients };
  }

  /** Add the Hessian and the gradient at v of entry k of a term. */
  const DERIVATIVES = {
    squared: (term, k, H, g, v) => {
      const x = term.X.at(k);
      const factor = Rational.of(2).div(term.m.at(k));
      const slope = v && dot(x, v).sub(term.y.at(k)).mul(factor);
      x.forEach((a, i) => {
        x.forEach((b, j) => {
          H[i][j] = H[i][j].add(a.mul(b).mul(factor));
        });
        if (g) g[i] = g[i].add(slope.mul(a));
      });
    },
    point: (term, k, H, g, v) => {
      const twice = weighted(term, k, Rational.of(2));
      H.forEach((row, j) => {
        row[j] = row[j].add(twice);
        if (g) g[j] = g[j].add(v[j].sub(term.a.at(k)[j]).mul(twice));
      });
    },
    ridge: (term, k, H, g, v) => {
      H.forEach((row, j) => {
        const mu = coefficient(term.mu, k, j);
        row[j] = row[j].add(mu);
        if (g) g[j] = g[j].add(mu.mul(v[j]));
      });
    },
  };

  const addVectors = (a, b) => a.map((x, j) => x.add(b[j]));
  const addMatrices = (A, B) => A.map((row, i) => addVectors(row, B[i]));
  const diagonalOf = (H) => H.map((row, j) => row[j]);

  /** max over sign vectors s of s^T M s; in more dimensions the sum of |M_jk|, which is above. */
  function signMaximumAbove(M) {
    const d = M.length;
    if (d > SIGN_DIMENSION) return sum(M.flat().map((x) => x.abs()));
    let most = null;
    for (let bits = 0; bits < 2 ** (d - 1); bits += 1) {
      const sign = (j) => ((bits >> j) & 1 ? -1 : 1);
      const value = sum(M.flatMap((row, i) => row.map((x, j) => x.times(sign(i) * sign(j)))));
      most = most === null ? value : larger(most, value);
    }
    return most;
  }

  /** @returns {{bound: Rational, final: boolean}} beta_i is at most that; final: no root betters it. */
  function betaAbove(kind, H, root) {
    if (kind === "l1") return { bound: diagonalOf(H).reduce(larger), final: true };
    if (kind === "linf" && H.length <= SIGN_DIMENSION) {
      return { bound: signMaximumAbove(H), final: true };
    }
    const t = rowMargins(plusGram(H, root ?? [], 1), 1);
    const final = root !== null || H.length === 1; // a 1 x 1 matrix is its own diagonal
    return { bound: kind === "l2" ? t.reduce(larger) : sum(t), final };
  }

  /** Whether alpha is proved to be at most the strong convexity of a sum of losses. */
  function isAlphaBelow(kind, H, alpha, { total, inverse }) {
    const t = rowMargins(plusGram(H, total ?? [], -1), -1);
    const least = t.reduce(smaller);
    if (kind !== "l1" && !alpha.above(least)) return true;
    if (least.sign <= 0) return false;
    if (kind === "l1" && !alpha.mul(sum(t.map((x) => x.inverse()))).above(ONE)) return true;
    if (kind === "l2" || inverse === null) return false;
    const M = inverseAbove(H, inverse, least);
    const most = kind === "l1" ? signMaximumAbove(M) : diagonalOf(M).reduce(larger);
    return !alpha.mul(most).above(ONE);
  }

  /** M = X + X^T - X^T H X + S^T S / mu with S = I - H X: as a form, at least H^-1. */
  function inverseAbove(H, X, mu) {
    const columns = (A) => A[0].map((_, j) => A.map((row) => row[j]));
    const times = (A, B) => {
      const b = columns(B);
      return A.map((row) => b.map((column) => dot(row, column)));
    };
    const HX = times(H, X);
    const S = HX.map((row, i) => row.map((x, j) => (i === j ? ONE.sub(x) : x.neg())));
    const XHX = times(columns(X), HX);
    const SS = times(columns(S), S);
    return X.map((row, i) =>
      row.map((x, j) => x.add(X[j][i]).sub(XHX[i][j]).add(SS[i][j].div(mu))),
    );
  }

  /** Why alpha (or the modulus) is not proved to be a lower bound, if so. */
  function alphaBelowFault(kind, H, alpha, roots, what) {
    if (isAlphaBelow(kind, H, alpha, roots)) return null;
    const text = `${what} is not proved to be below the strong convexity of the cluster's losses`;
    return faultOf(text, roots.total !== null || H.length === 1);
  }

  /** A constant that is not proved is false where no root could better its bound. */
  function faultOf(text, final) {
    return final ? falseConstant(text) : unproved(`${text}: that may need a root`);
  }

  /** End with the first that is false, else with the first that is not proved. */
  function requireNone(faults) {
    const found = faults.filter((fault) => fault !== null);
    if (found.length) throw found.find((fault) => fault.status === "REFUTED") ?? found[0];
  }

  /** Of a positive claim: beta and delta from above, alpha from below. */
  function requireUpperConstants(cluster, problem) {
    const { nodes, alpha, beta, delta, center, roots } = cluster;
    const { kind } = problem.penalty;
    const { hessians, gradients } = derivatives(cluster, problem);
    const faults = nodes.map((i, k) => {
      const { bound, final } = betaAbove(kind, hessians[k], roots.local && roots.local[k]);
      if (!beta[k].below(bound)) return null;
      return faultOf(`beta of node ${i} is below the smoothness of its loss`, final);
    });
    if (alpha === null) throw falseConstant("alpha is infinite");
    faults.push(alphaBelowFault(kind, hessians.reduce(addMatrices), alpha, roots, "alpha"));
    requireNone(faults);
    if (center === null) throw malformed("the constants need a center");
    const norm = NORM_OF[DUAL_NORM[kind]];
    const residual = norm(gradients.reduce(addVectors)).upper;
    nodes.forEach((i, k) => {
      const least = norm(gradients[k]).upper.add(beta[k].mul(residual).div(alpha));
      if (delta[k].below(least)) throw falseConstant(`delta of node ${i} is too small`);
    });
  }

  /** Of a negative claim: beta and delta from below, alpha from above. */
  function requireLowerConstants(cluster, problem) {
    const { nodes, alpha, beta, delta, center, directions } = cluster;
    const { kind } = problem.penalty;
    const some = (list) => list.some((x) => x.n !== 0n);
    if (alpha === null && !some(beta) && !some(delta)) return;
    const { hessians, gradients } = derivatives(cluster, problem);
    const faults = nodes.map((i, k) => {
      const v = directions.beta && directions.beta[k];
      if (beta[k].n === 0n) return null;
      if (!v) return unproved(`beta of node ${i} needs a direction`);
      if (!beta[k].mul(squaredNorm(kind, v)).above(quadraticForm(hessians[k], v))) return null;
      return falseConstant(`beta of node ${i} is above the smoothness of its loss`);
    });
    const H = hessians.reduce(addMatrices);
    if (alpha !== null) faults.push(alphaAboveFault(kind, H, alpha, directions.alpha));
    requireNone(faults);
    if (!some(delta)) return;
    if (center === null) throw malformed("the constants need a center");
    requireLowerDeltas(cluster, kind, hessians, gradients);
  }

  function alphaAboveFault(kind, H, alpha, v) {
    if (!v) return unproved("alpha needs a direction");
    if (!alpha.mul(squaredNorm(kind, v)).below(quadraticForm(H, v))) return null;
    return falseConstant("alpha is below the strong convexity of the cluster's losses");
  }

  const quadraticForm = (H, v) => dot(v, H.map((row) => dot(row, v))); // prettier-ignore

  /** ||v||^2 in the norm of the penalty. */
  function squaredNorm(kind, v) {
    return kind === "l2" ? dot(v, v) : NORM_OF[kind](v).lower.square();
  }

  function requireLowerDeltas({ nodes, delta, modulus, roots }, kind, hessians, gradients) {
    const norm = NORM_OF[DUAL_NORM[kind]];
    const residual = norm(gradients.reduce(addVectors)).upper;
    const isMinimizer = residual.n === 0n;
    if (!isMinimizer) {
      if (modulus === null || modulus.n === 0n) {
        throw malformed("a center that is not the minimizer needs a modulus");
      }
      const H = hessians.reduce(addMatrices);
      requireNone([alphaBelowFault(kind, H, modulus, roots, "modulus")]);
    }
    nodes.forEach((i, k) => {
      if (delta[k].n === 0n) return;
      let most = norm(gradients[k]).lower;
      if (!isMinimizer) {
        const { bound } = betaAbove(kind, hessians[k], roots.local && roots.local[k]);
        most = most.sub(bound.mul(residual).div(modulus));
      }
      if (delta[k].above(most)) throw falseConstant(`delta of node ${i} is too large`);
    });
  }

  // ------------------------------------------------------------------------------------------
  // Documents as raw arrays in a zip file (SCHEMA.md, sections 8 and 9), read in pieces
  // ------------------------------------------------------------------------------------------

  const MOST_MEMBERS = 4096;
  const MOST_LABELS = 2 ** 26;
  const ARRAYS = 2 ** 32; // numbers of nodes, dimensions and edges are below

  /** What is read from: it has a `length`, and `read` fills an array with what is at an offset. */
  class Bytes {
    constructor(bytes) {
      this.bytes = bytes;
      this.length = bytes.length;
    }

    read(target, at) {
      target.set(this.bytes.subarray(at, at + target.length));
    }
  }

  /** @returns {Uint8Array} bytes of a source, which has as many. */
  function taken(source, at, size) {
    const found = new Uint8Array(size);
    source.read(found, at);
    return found;
  }

  /** @returns {Uint8Array} all that is in a source. */
  function whole(source) {
    return source instanceof Uint8Array ? source : taken(source, 0, source.length);
  }

  function isZip(source) {
    if (source.length < 4) return false;
    return String.fromCharCode(...taken(source, 0, 4)) === "PK\x03\x04";
  }

  /** Reads bits, least significant first, and the codes of Huffman. */
  class BitReader {
    constructor(source, from, size) {
      this.source = source;
      this.from = from;
      this.left = size;
      this.piece = new Uint8Array(0);
      this.at = 0;
      this.buffer = 0;
      this.count = 0;
    }

    refill() {
      const size = Math.min(PIECE, this.left);
      if (size === 0) throw malformed("a deflate stream that is cut");
      this.piece = taken(this.source, this.from, size);
      this.from += size;
      this.left -= size;
      this.at = 0;
    }

    bits(need) {
      while (this.count < need) {
        if (this.at === this.piece.length) this.refill();
        this.buffer |= this.piece[this.at] << this.count;
        this.at += 1;
        this.count += 8;
      }
      const value = this.buffer & ((1 << need) - 1);
      this.buffer >>>= need;
      this.count -= need;
      return value;
    }

    symbol({ counts, symbols }) {
      let [code, first, index] = [0, 0, 0];
      for (let length = 1; length <= 15; length += 1) {
        code |= this.bits(1);
        if (code - counts[length] < first) return symbols[index + code - first];
        index += counts[length];
        first = (first + counts[length]) << 1;
        code <<= 1;
      }
      throw malformed("a code of a deflate stream that is none");
    }
  }

  /**
   * Canonical codes of given lengths.
   * @returns {{counts: Uint16Array, symbols: Uint16Array, left: number}} left: unused codes.
   */
  function huffman(lengths) {
    const counts = new Uint16Array(16);
    for (const length of lengths) counts[length] += 1;
    let left = 1;
    for (let length = 1; length <= 15; length += 1) {
      left = 2 * left - counts[length];
      if (left < 0) throw malformed("a deflate stream with too many codes");
    }
    if (counts[0] === lengths.length) left = 0;
    const next = new Uint16Array(16);
    for (let length = 1; length < 15; length += 1) next[length + 1] = next[length] + counts[length];
    const symbols = new Uint16Array(lengths.length);
    lengths.forEach((length, symbol) => {
      if (length) symbols[next[length]++] = symbol;
    });
    counts[0] = 0;
    return { counts, symbols, left };
  }

  const LENGTH_CODES = [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258]; // prettier-ignore
  const LENGTH_BITS = [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0]; // prettier-ignore
  const CODE_ORDER = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
  const FIXED = {
    literals: huffman([...Array(144).fill(8), ...Array(112).fill(9), ...Array(24).fill(7), ...Array(8).fill(8)]), // prettier-ignore
    distances: huffman(Array(30).fill(5)),
  };

  /** One raw deflate stream that fills the size exactly and uses all bytes. */
  function inflate(source, from, packed, size) {
    // No stream grows more than 1032 times: what claims to is refused before there is room for it.
    if (size > 1032 * packed) throw malformed("a deflate stream of a wrong size");
    spend(size + packed);
    const reader = new BitReader(source, from, packed);
    const out = { bytes: new Uint8Array(size), at: 0 };
    let isLast = 0;
    while (!isLast) {
      isLast = reader.bits(1);
      const type = reader.bits(2);
      if (type === 0) copyStored(reader, out);
      else if (type === 1) inflateBlock(reader, out, FIXED);
      else if (type === 2) inflateBlock(reader, out, readCodes(reader));
      else throw malformed("a deflate block of no known type");
    }
    if (out.at !== size || reader.left || reader.at !== reader.piece.length) {
      throw malformed("a deflate stream of a wrong size");
    }
    return out.bytes;
  }

  function push(out, byte) {
    if (out.at >= out.bytes.length) throw malformed("a deflate stream of a wrong size");
    out.bytes[out.at] = byte;
    out.at += 1;
  }

  function copyStored(reader, out) {
    [reader.buffer, reader.count] = [0, 0];
    const length = reader.bits(16);
    if ((reader.bits(16) ^ 0xffff) !== length) throw malformed("a deflate block of a wrong length");
    for (let k = 0; k < length; k += 1) push(out, reader.bits(8));
  }

  function readCodes(reader) {
    const literals = reader.bits(5) + 257;
    const distances = reader.bits(5) + 1;
    const codes = reader.bits(4) + 4;
    if (literals > 286 || distances > 30) throw malformed("a deflate stream with too many codes");
    const lengths = new Array(19).fill(0);
    for (let k = 0; k < codes; k += 1) lengths[CODE_ORDER[k]] = reader.bits(3);
    const first = complete(huffman(lengths), false);
    const all = [];
    while (all.length < literals + distances) {
      const symbol = reader.symbol(first);
      if (symbol < 16) {
        all.push(symbol);
        continue;
      }
      if (symbol === 16 && !all.length) throw malformed("a deflate stream that repeats nothing");
      const value = symbol === 16 ? all[all.length - 1] : 0;
      let times = 3 + reader.bits(symbol === 16 ? 2 : 3);
      if (symbol === 18) times += 8 + (reader.bits(4) << 3);
      while (times--) all.push(value);
    }
    if (all.length > literals + distances || !all[256]) {
      throw malformed("a deflate stream with wrong codes");
    }
    return {
      literals: complete(huffman(all.slice(0, literals)), true),
      distances: complete(huffman(all.slice(literals)), true),
    };
  }

  /** Codes must be complete, but that a single one may have the length 1. */
  function complete(codes, mayBeSingle) {
    const isSingle = codes.counts[1] === 1 && codes.counts.slice(2).every((count) => count === 0);
    if (codes.left > 0 && !(mayBeSingle && isSingle)) {
      throw malformed("a deflate stream with unused codes");
    }
    return codes;
  }

  function inflateBlock(reader, out, { literals, distances }) {
    for (;;) {
      const symbol = reader.symbol(literals);
      if (symbol === 256) return;
      if (symbol < 256) {
        push(out, symbol);
        continue;
      }
      const k = symbol - 257;
      if (k >= 29) throw malformed("a deflate code of no known length");
      const length = LENGTH_CODES[k] + reader.bits(LENGTH_BITS[k]);
      const code = reader.symbol(distances);
      if (code >= 30) throw malformed("a deflate code of no known distance");
      const extra = code < 4 ? 0 : (code >> 1) - 1;
      const start = code < 4 ? code + 1 : ((2 + (code & 1)) << extra) + 1;
      const distance = start + reader.bits(extra);
      if (distance > out.at) throw malformed("a deflate distance before the beginning");
      for (let i = 0; i < length; i += 1) push(out, out.bytes[out.at - distance]);
    }
  }

  /** By byte, and by byte that 1, 2 or 3 others follow: four bytes are one step. */
  const CRC_TABLES = [new Uint32Array(256)];
  CRC_TABLES[0].forEach((_, byte, table) => {
    let c = byte;
    for (let k = 0; k < 8; k += 1) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
    table[byte] = c;
  });
  for (let k = 1; k < 4; k += 1) {
    CRC_TABLES.push(CRC_TABLES[k - 1].map((c) => CRC_TABLES[0][c & 255] ^ (c >>> 8)));
  }

  /** The CRC-32 of what had the CRC-32 `crc`, 0 at first, with these bytes behind it. */
  function crc32(crc, bytes) {
    const [t0, t1, t2, t3] = CRC_TABLES;
    let c = ~crc;
    let k = 0;
    for (; k + 4 <= bytes.length; k += 4) {
      c ^= bytes[k] | (bytes[k + 1] << 8) | (bytes[k + 2] << 16) | (bytes[k + 3] << 24);
      c = t3[c & 255] ^ t2[(c >>> 8) & 255] ^ t1[(c >>> 16) & 255] ^ t0[c >>> 24];
    }
    for (; k < bytes.length; k += 1) c = t0[(c ^ bytes[k]) & 255] ^ (c >>> 8);
    return ~c >>> 0;
  }

  /** Fields of a record, little-endian: their sizes in bytes by their names. */
  function record(source, at, signature, sizes) {
    const length = Object.values(sizes).reduce((a, b) => a + b, 4);
    if (at < 0 || at + length > source.length) throw malformed("a zip file that is cut");
    const view = new DataView(taken(source, at, length).buffer);
    if (view.getUint32(0, true) !== signature) throw malformed("a zip record that is none");
    const found = { end: at + length };
    let k = 4;
    for (const [name, size] of Object.entries(sizes)) {
      found[name] = size === 2 ? view.getUint16(k, true) : view.getUint32(k, true);
      k += size;
    }
    return found;
  }

  const COMMON = { flags: 2, method: 2, time: 2, date: 2, crc: 4, packed: 4, size: 4, name: 2, extra: 2 }; // prettier-ignore
  const LOCAL = { version: 2, ...COMMON };
  const CENTRAL = { maker: 2, version: 2, ...COMMON, comment: 2, disk: 2, inside: 2, outside: 4, offset: 4 }; // prettier-ignore
  const END = { disk: 2, first: 2, here: 2, count: 2, size: 4, offset: 4, comment: 2 };
  const END_BYTES = 22;

  /**
   * A member of a zip file.
   * @typedef {object} Member
   * @property {string} name
   * @property {number} size
   * @property {function(?Sha256): Uint8Array} contents - Which take part in the hash, if one is given.
   */

  /** @returns {Member[]} of a plain zip file. */
  function readZip(source) {
    const last = source.length - END_BYTES;
    const end = record(source, last, 0x06054b50, END);
    const isPlain = end.disk === 0 && end.first === 0 && end.here === end.count && !end.comment;
    if (!isPlain || end.offset + end.size !== last) {
      throw malformed("a zip file with a wrong end");
    }
    if (end.count > MOST_MEMBERS) throw malformed(`more than ${MOST_MEMBERS} members`);
    const members = [];
    let [at, start] = [end.offset, 0];
    for (let k = 0; k < end.count; k += 1) {
      const central = record(source, at, 0x02014b50, CENTRAL);
      const local = record(source, start, 0x04034b50, LOCAL);
      const { method, crc, packed, size, name } = central;
      const same = ["flags", "method", "crc", "packed", "size", "name", "extra"];
      const none = central.flags | central.extra | central.comment | central.disk;
      const texts = [central, local].map((r) => nameOf(source, r.end, name));
      if (
        same.some((key) => central[key] !== local[key]) ||
        none !== 0 ||
        (method !== 0 && method !== 8) ||
        central.offset !== start ||
        Math.max(packed, size, start) >= 2 ** 32 - 1 ||
        (method === 0 && packed !== size) ||
        texts[0] !== texts[1]
      ) {
        throw malformed("a zip file that is not in the plainest form");
      }
      const from = local.end + name;
      [at, start] = [central.end + name, from + packed];
      if (start > end.offset) throw malformed("a zip file whose members overlap");
      const contents = (hash) => checkedContents(source, from, central, hash);
      members.push({ name: texts[0], size, contents });
    }
    if (start !== end.offset || at !== last) {
      throw malformed("a zip file with more in it than its members");
    }
    return members;
  }

  function nameOf(source, at, length) {
    if (at + length > source.length) throw malformed("a zip file that is cut");
    return String.fromCharCode(...taken(source, at, length));
  }

  /**
   * Contents of a member, in memory of their own: what is checked and hashed is what is used, even
   * if the file changes meanwhile. What is stored is read, hashed and checked piece by piece.
   */
  function checkedContents(source, from, { method, packed, size, crc }, hash) {
    spend(packed);
    const isStored = method === 0;
    const contents = isStored ? new Uint8Array(size) : inflate(source, from, packed, size);
    let found = 0;
    for (let at = 0; at < size; at += PIECE) {
      const piece = contents.subarray(at, at + PIECE);
      if (isStored) source.read(piece, from + at);
      found = crc32(found, piece);
      if (hash) hash.update(piece);
    }
    if (found !== crc) throw malformed("a member with a wrong CRC-32");
    return contents;
  }

  /** Members that the manifest asks for, one after the other. */
  class Members {
    constructor(members) {
      this.members = members;
      this.at = 1; // after the manifest
      this.hashes = [];
    }

    /** The next member, which must have this name and size. */
    expect(name, size) {
      const member = this.members[this.at];
      if (member === undefined || member.name !== name)
        throw malformed(`expected a member ${name}`);
      if (size !== null && member.size !== size) {
        throw malformed(`${name} must have ${size} bytes, it has ${member.size}`);
      }
      return member;
    }

    /** @returns {Uint8Array} */
    next(name, size, hash = null) {
      const member = this.expect(name, size);
      this.at += 1;
      return member.contents(hash);
    }

    /** Of the data: its hash is part of theirs. */
    data(name, size) {
      const hash = new Sha256();
      const contents = this.next(name, size, hash);
      this.hashes.push(hash.digest());
      return contents;
    }

    indices(name, count) {
      return arrayOf(this.data(name, 4 * count), Uint32Array);
    }

    doubles(name, count) {
      return new DoubleList(arrayOf(this.data(name, 8 * count), Float64Array));
    }

    /** Rows of doubles. */
    table(name, rows, columns) {
      return new DoubleTable(this.doubles(name, rows * columns).values, columns);
    }

    end() {
      if (this.at !== this.members.length) throw malformed("members that nothing asks for");
    }
  }

  const IS_LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

  /** Contents of a member, which begin where their memory does, as an array of numbers. */
  function arrayOf(bytes, Type) {
    const size = Type.BYTES_PER_ELEMENT;
    if (!IS_LITTLE_ENDIAN) {
      for (let k = 0; k < bytes.length; k += size) bytes.subarray(k, k + size).reverse();
    }
    return new Type(bytes.buffer);
  }

  /** The fields of a kind of term, with their columns: d, or 1 for a number a row. */
  function fieldsOf(term, d) {
    const kind = term.get("kind");
    const weight = term.has("weighted") ? [["weight", 1, false]] : [];
    if (Object.hasOwn(ROW_KINDS, kind)) {
      return [["X", d, true], ["y", 1, false], ...(ROW_KINDS[kind] ? [[ROW_KINDS[kind], 1, false]] : []), ...weight]; // prettier-ignore
    }
    if (kind === "opaque") return [];
    const isWide = kind === "ridge" || kind === "l1" ? term.get("wide") : kind !== "simplex";
    return [...NODE_KINDS[kind].map((key) => [key, isWide ? d : 1, isWide]), ...weight];
  }

  function readTermHead(value, where) {
    const kind = value instanceof Map ? value.get("kind") : null;
    if (kind === CLASS_KIND) throw unproved(`no exact rule for the loss ${kind} in arrays`);
    const isKnown = typeof kind === "string" && [ROW_KINDS, NODE_KINDS].some((t) => Object.hasOwn(t, kind)); // prettier-ignore
    if (!isKnown) throw malformed(`${where}: unknown kind ${shown(kind)}`);
    const hasWidth = kind === "ridge" || kind === "l1";
    const own = hasWidth ? ["wide"] : kind === "opaque" ? ["name"] : [];
    objectWith(value, where, ["kind", "rows", ...own], isWeighable(kind) ? ["weighted"] : []);
    if (value.has("weighted") && value.get("weighted") !== true) {
      throw malformed(`${where}.weighted must be true where it is`);
    }
    const rows = integerIn(value.get("rows"), `${where}.rows`, 0, MOST);
    const wide = value.get("wide");
    if (hasWidth && (typeof wide !== "boolean" || (wide && rows === 0))) {
      throw malformed(`${where}.wide must be true or false, false where there are no rows`);
    }
    if (kind === "opaque") textOf(value.get("name"), `${where}.name`);
    return new Map(value).set("rows", rows);
  }

  /** Reals of a head are texts: the JSON number of one has several forms. */
  function withoutNumbers(value, where) {
    if (value instanceof JsonNumber) throw malformed(`${where}: reals must be hexadecimal texts`);
    if (value instanceof Map) value.forEach((x) => withoutNumbers(x, where));
    if (Array.isArray(value)) value.forEach((x) => withoutNumbers(x, where));
    return value;
  }

  /** @returns {{data: Map, hash: string}} problem data as in section 1, with numbers for texts. */
  function readArrayData(value, members) {
    const keys = ["schema", "n_nodes", "dim", "n_edges", "lam", "penalty", "terms"];
    const head = new Map(objectWith(value, "data", keys, ["nodes"]));
    const n = integerIn(head.get("n_nodes"), "n_nodes", 1, ARRAYS);
    const d = integerIn(head.get("dim"), "dim", 1, ARRAYS);
    const m = integerIn(head.get("n_edges"), "n_edges", 0, ARRAYS);
    ["lam", "penalty"].forEach((key) => withoutNumbers(head.get(key), key));
    const terms = listOf(head.get("terms"), "terms").map((t, k) => readTermHead(t, `terms[${k}]`));
    head.set("n_nodes", n).set("dim", d).set("n_edges", m).set("terms", terms);
    const columns = ["head", "tail"].map((name) => members.indices(name, m));
    const data = new Map([
      ["schema", head.get("schema")],
      ["n_nodes", n],
      ["dim", d],
      ["edges", new Edges(...columns)],
      ["weights", members.doubles("weights", m)],
      ["lam", head.get("lam")],
      ["penalty", head.get("penalty")],
    ]);
    if (head.has("nodes")) data.set("nodes", readLabelMember(head.get("nodes"), members, n));
    data.set("terms", terms.map((term, t) => readArrayTerm(term, `terms/${t}`, members, d))); // prettier-ignore
    const hashed = new Map([
      ["data", head],
      ["sha256", members.hashes],
    ]);
    return { data, hash: sha256(canonicalText(hashed)) };
  }

  function readLabelMember(isThere, members, n) {
    if (isThere !== true) throw malformed("data.nodes must be true where it is");
    const bytes = members.data("nodes.json", null);
    if (bytes.length > MOST_LABELS) throw malformed("labels of more than 2^26 bytes");
    const labels = readJson(bytes, "nodes.json: ");
    const text = canonicalText(readLabels(labels, n));
    const isCanonical =
      text.length === bytes.length && bytes.every((b, k) => b === text.charCodeAt(k));
    if (!isCanonical) throw malformed("nodes.json is not in canonical form");
    return labels;
  }

  function readArrayTerm(head, where, members, d) {
    const rows = head.get("rows");
    const term = new Map([["kind", head.get("kind")]]);
    if (head.has("name")) term.set("name", head.get("name"));
    term.set("node", members.indices(`${where}/node`, rows));
    for (const [key, columns, isTable] of fieldsOf(head, d)) {
      const name = `${where}/${key}`;
      term.set(key, isTable ? members.table(name, rows, columns) : members.doubles(name, rows));
    }
    return term;
  }

  const MOST_LAYERS = 16;

  /**
   * The sum of the layers of a table of witness numbers, row by row.
   *
   * `at(i)` makes a row of Rationals; `addFlow` adds up many.
   */
  class LayeredTable extends ReadList {
    constructor(layers, columns) {
      super();
      this.layers = layers;
      this.columns = columns;
    }

    at(i) {
      const row = new Array(this.columns).fill(ZERO);
      for (const layer of this.layers) layer.addTo(row, i);
      return row;
    }

    /** Add rows from `from` up to `to`, without `to`, less those in the list `less`. */
    addFlow(total, from, to, less) {
      for (const layer of this.layers) layer.addFlow(total, from, to, less);
    }
  }

  /** The only column of a table. */
  class OnlyColumn extends ReadList {
    constructor(rows) {
      super();
      this.rows = rows;
    }

    at(i) {
      return this.rows.at(i)[0];
    }
  }

  /** @returns {LayeredTable} */
  function readLayers(value, name, members, rows, columns) {
    const layers = listOf(value, name);
    if (layers.length > MOST_LAYERS) throw malformed(`${name}: more than ${MOST_LAYERS} layers`);
    // What is in the file is compared with what is asked for before there is room for it.
    const [first] = layers;
    if (first instanceof Map && first.get("type") !== "ratio" && !first.has("rows")) {
      const ofInt = first.has("words") ? integerIn(first.get("words"), `${name}.words`, 1, 1025) : 1;
      members.expect(`${name}/0`, 8 * ofInt * rows * columns);
    }
    spend(rows * columns);
    if (rows * columns > MOST_BITS) throw unproved("a table is too large", "budget");
    const found = layers.map((layer, k) => {
      return readLayer(layer, `${name}/${k}`, members, rows, columns);
    });
    return new LayeredTable(found, columns);
  }

  /** Where a layer has something: all rows, or some. */
  class Places {
    /**
     * @param {?Uint32Array|number[]} indices - Increasing; null for all rows.
     * @param {number} rows - Of the table.
     */
    constructor(indices, rows) {
      this.indices = indices;
      this.of = null;
      // A list of all rows where that takes no more memory than 16 times the indices.
      if (indices === null || rows > 16 * indices.length) return;
      spend(rows);
      this.of = new Uint32Array(rows);
      indices.forEach((i, k) => {
        this.of[i] = k + 1;
      });
    }

    /** The number of the row in the layer, or -1. */
    find(i) {
      const { indices } = this;
      if (indices === null) return i;
      if (this.of !== null) return this.of[i] - 1;
      let [low, high] = [0, indices.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (indices[middle] < i) low = middle + 1;
        else high = middle;
      }
      return indices[low] === i ? low : -1;
    }
  }

  /** A layer of numbers `value(k)`, k counting through its rows. */
  class Layer {
    constructor(places, columns) {
      this.places = places;
      this.columns = columns;
    }

    addTo(row, i, sign = 1) {
      const k = this.places.find(i) * this.columns;
      if (k < 0) return;
      for (let j = 0; j < this.columns; j += 1) {
        const x = this.value(k + j);
        row[j] = row[j].add(sign < 0 ? x.neg() : x);
      }
    }

    addFlow(total, from, to, less) {
      for (let i = from; i < to; i += 1) this.addTo(total, i);
      for (const i of less) this.addTo(total, i, -1);
    }
  }

  class DoubleLayer extends Layer {
    constructor(places, columns, values) {
      super(places, columns);
      this.values = values;
    }

    value(k) {
      return Rational.double(this.values[k]);
    }
  }

  class RatioLayer extends Layer {
    constructor(places, columns, values) {
      super(places, columns);
      this.values = values;
    }

    value(k) {
      return this.values[Math.floor(k / this.columns)][k % this.columns];
    }
  }

  /** Integers on a grid, of some words each. */
  class IntegerLayer extends Layer {
    constructor(places, columns, { bytes, size, exponent }) {
      super(places, columns);
      this.signed = arrayOf(bytes, BigInt64Array);
      this.unsigned = new BigUint64Array(bytes.buffer);
      this.size = size;
      this.exponent = exponent;
    }

    integer(k) {
      const { size } = this;
      const last = (k + 1) * size - 1;
      let n = this.signed[last];
      if (size === 1) return n;
      spend(4 * size + ((size * size) >> 4)); // each time that it is asked for
      for (let i = 1; i < size; i += 1) n = (n << 64n) | this.unsigned[last - i];
      return n;
    }

    value(k) {
      return new Rational(this.integer(k), -this.exponent);
    }

    /** The sums are integers on the grid: what is made of them is one number for each column. */
    addFlow(total, from, to, less) {
      const sums = new Array(this.columns).fill(0n);
      for (let i = from; i < to; i += 1) this.addIntegers(sums, i, false);
      for (const i of less) this.addIntegers(sums, i, true);
      sums.forEach((n, j) => {
        total[j] = total[j].add(new Rational(n, -this.exponent));
      });
    }

    addIntegers(sums, i, isNegative) {
      const k = this.places.find(i) * this.columns;
      if (k < 0) return;
      spend(this.columns);
      for (let j = 0; j < this.columns; j += 1) {
        const n = this.integer(k + j);
        sums[j] = isNegative ? sums[j] - n : sums[j] + n;
      }
    }
  }

  /** @returns {Layer} */
  function readLayer(layer, name, members, rows, columns) {
    const type = layer instanceof Map ? layer.get("type") : null;
    if (type === "ratio") return readRatios(layer, name, rows, columns);
    const own = type === "int" ? ["words", "exponent"] : [];
    if (type !== "int" && type !== "float64")
      throw malformed(`${name}: unknown type ${shown(type)}`);
    objectWith(layer, name, ["type", ...own], ["rows"]);
    let indices = null;
    let count = rows;
    if (layer.has("rows")) {
      count = integerIn(layer.get("rows"), `${name}.rows`, 0, rows + 1);
      indices = arrayOf(members.next(`${name}/rows`, 4 * count), Uint32Array);
      increasing(indices, rows, name);
    }
    const places = new Places(indices, rows);
    const read = type === "int" ? readIntegers : readDoubles;
    return read(layer, name, members, places, columns, count * columns);
  }

  function increasing(indices, limit, name) {
    spend(indices.length);
    for (let k = 0; k < indices.length; k += 1) {
      if (indices[k] >= limit || (k && indices[k] <= indices[k - 1])) {
        throw malformed(`${name}: rows must increase`);
      }
    }
  }

  function readDoubles(layer, name, members, places, columns, count) {
    spend(8 * count);
    const values = arrayOf(members.next(name, 8 * count), Float64Array);
    for (const x of values) {
      if (!Number.isFinite(x)) throw malformed(`${name}: a number that is not finite`);
    }
    return new DoubleLayer(places, columns, values);
  }

  function readIntegers(layer, name, members, places, columns, count) {
    const size = integerIn(layer.get("words"), `${name}.words`, 1, 1025);
    const exponent = integerIn(layer.get("exponent"), `${name}.exponent`, -20000, 20001);
    spend(8 * count * size);
    const bytes = members.next(name, 8 * count * size);
    return new IntegerLayer(places, columns, { bytes, size, exponent });
  }

  function readRatios(layer, name, rows, columns) {
    objectWith(layer, name, ["type", "rows", "values"]);
    const where = listOf(layer.get("rows"), `${name}.rows`).map((x) => integerIn(x, name, 0, rows));
    increasing(where, rows, name);
    const values = witnessTable(layer.get("values"), `${name}.values`, where.length, columns);
    return new RatioLayer(new Places(where, rows), columns, values);
  }

  /** The document that the manifest and its members are, as sections 3 and 7 have it. */
  function readArrays(source) {
    const zip = readZip(source);
    if (!zip.length || zip[0].name !== "manifest.json") throw malformed("no manifest.json");
    const manifest = readJson(zip[0].contents(null), "manifest.json: ");
    const isMap = manifest instanceof Map;
    if (isMap && manifest.get("schema") === PARTITION_ARRAYS) {
      return readPartitionArrays(manifest, zip);
    }
    return readCertificateArrays(manifest, zip);
  }

  function readCertificateArrays(manifest, zip) {
    const keys = ["schema", "sha256", "claim", "data", "w"];
    objectWith(manifest, "manifest", keys, ["dual", "better", "producer"]);
    if (manifest.get("schema") !== "gtv-certificate-arrays/1") {
      throw malformed(`unknown schema ${shown(manifest.get("schema"))}`);
    }
    const claim = readClaim(manifest.get("claim"));
    ["lower", "upper"].forEach((key) => claim.get(key) === null || witness(claim.get(key)));
    const members = new Members(zip);
    const { data, hash } = readArrayData(manifest.get("data"), members);
    const [n, d, m] = [data.get("n_nodes"), data.get("dim"), data.get("edges").length];
    const read = (value, name, rows, columns) => readLayers(value, name, members, rows, columns);
    const doc = new Map(manifest).set("data", data).set(ARRAYS_HASH, hash);
    doc.set("w", read(manifest.get("w"), "w", n, d));
    const dual = manifest.get("dual") ?? null;
    if (dual !== null) doc.set("dual", readArrayDual(dual, data, read, m, d));
    const better = manifest.get("better") ?? null;
    if (better !== null) doc.set("better", read(better, "better", n, d));
    members.end();
    return doc;
  }

  function readArrayDual(value, data, read, m, d) {
    const isQuadratic = data.get("penalty") instanceof Map && data.get("penalty").get("kind") === "quadratic"; // prettier-ignore
    const dual = new Map(objectWith(value, "dual", ["u", "r"], isQuadratic ? ["quadratic"] : []));
    dual.set("u", read(dual.get("u"), "u", m, d));
    const quadratic = dual.get("quadratic") ?? null;
    if (quadratic !== null) {
      const keys = ["root", "null_space", "x"];
      const found = new Map(objectWith(quadratic, "dual.quadratic", keys));
      dual.set("quadratic", found.set("x", read(found.get("x"), "x", m, d)));
    }
    const terms = data.get("terms");
    const r = listOf(dual.get("r"), "dual.r", terms.length).map((layers, t) => {
      const hasRows = terms[t].has("X");
      const found = read(layers, `r/${t}`, terms[t].get("node").length, hasRows ? 1 : d);
      return hasRows ? new OnlyColumn(found) : found;
    });
    return dual.set("r", r);
  }

  const PARTITION_ARRAYS = "gtv-connectivity-arrays/1";

  /** The document about a partition that the manifest and its members are (section 9). */
  function readPartitionArrays(manifest, zip) {
    const tables = ["beta", "delta", "flow", "directions", "local"];
    const keys = ["schema", "sha256", "claim", "data", "clusters", ...tables];
    objectWith(manifest, "manifest", keys, ["producer"]);
    const members = new Members(zip);
    const { data, hash } = readArrayData(manifest.get("data"), members);
    const entries = listOf(manifest.get("clusters"), "clusters").map(readSizes);
    const total = (of) => entries.reduce((sum, { sizes }) => sum + (of(sizes) ?? 0), 0);
    const [nodes, d] = [total((s) => s.cluster), data.get("dim")];
    const indices = (name, count) => pick(indexMember(members, name, count));
    const rows = (name, count, columns) => {
      const table = readLayers(manifest.get(name), name, members, count, columns);
      return pick(Array.from({ length: count }, (_, k) => table.at(k)));
    };
    const whole = listOf(manifest.get("flow"), "flow").every((layer) => {
      return layer instanceof Map && layer.get("type") === "int" && isZero(layer.get("exponent"));
    });
    if (!whole) throw malformed("flow: layers must be integers with exponent 0");
    const parts = { cluster: indices("cluster", nodes) };
    parts.sets = indices("sets", total((s) => s.sets.reduce((a, b) => a + b, 0))); // prettier-ignore
    parts.leftOut = indices("left_out", total((s) => s.leftOut));
    parts.beta = rows("beta", nodes, 1);
    parts.delta = rows("delta", nodes, 1);
    parts.flow = rows("flow", total((s) => s.flow), 1); // prettier-ignore
    parts.along = pick(countMember(members, "directions", entries, 0));
    parts.directions = rows("directions", total((s) => s.directions), d); // prettier-ignore
    parts.counts = pick(countMember(members, "local", entries, 1));
    parts.local = rows("local", total((s) => s.local), d); // prettier-ignore
    members.end();
    const doc = new Map([["schema", PARTITION_ARRAYS], ["data", data], [ARRAYS_HASH, hash]]); // prettier-ignore
    ["sha256", "claim"].forEach((key) => doc.set(key, manifest.get(key)));
    return doc.set("clusters", entries.map((entry) => readEntry(entry, parts))); // prettier-ignore
  }

  const isZero = (value) => value instanceof JsonNumber && value.isInteger && Number(value.text) === 0; // prettier-ignore

  function indexMember(members, name, count) {
    const found = arrayOf(members.next(name, 4 * count), Uint32Array);
    spend(count);
    return Array.from(found);
  }

  /** For each node of some clusters how many rows are its own: a count is larger by `more`. */
  function countMember(members, key, entries, more) {
    const some = entries.filter(({ sizes }) => sizes[key] !== null);
    const size = some.reduce((sum, { sizes }) => sum + sizes.cluster, 0);
    const counts = indexMember(members, `${key}/count`, size);
    const next = pick(counts);
    for (const { sizes } of some) {
      const own = next(sizes.cluster);
      const total = own.reduce((sum, c) => sum + Math.max(0, c - more), 0);
      if (total !== sizes[key] || (key === "directions" && own.some((c) => c > 1))) {
        throw malformed(`${key}/count: not the numbers of rows that the manifest states`);
      }
    }
    return counts;
  }

  /** Takes the next entries of a list, again and again. */
  function pick(list) {
    let at = 0;
    return (count) => {
      at += count;
      return list.slice(at - count, at);
    };
  }

  /** How long the lists of a witness are; null where an optional one is not there. */
  function readSizes(value, k) {
    const where = `clusters[${k}]`;
    if (!(value instanceof Map) || !value.has("cluster")) throw malformed(`${where}: no cluster`);
    if (value.has("beta") || value.has("delta")) throw malformed(`${where}: beta and delta are arrays`); // prettier-ignore
    const length = (x, key) => integerIn(x, `${where}.${key}`, 0, ARRAYS);
    const inside = (key, part) => {
      const found = value.get(key);
      return found instanceof Map && found.has(part) ? length(found.get(part), part) : null;
    };
    const sizes = {
      cluster: length(value.get("cluster"), "cluster"),
      flow: value.has("flow") ? length(value.get("flow"), "flow") : 0,
      sets: listOf(value.has("sets") ? value.get("sets") : [], "sets").map((x) => length(x, "sets")), // prettier-ignore
      leftOut: value.has("left_out") ? length(value.get("left_out"), "left_out") : 0,
      directions: inside("directions", "beta"),
      local: inside("roots", "local"),
    };
    return { value, sizes };
  }

  /** A witness as JSON documents have it, with numbers that are read. */
  function readEntry({ value, sizes }, parts) {
    const entry = new Map(value).set("cluster", parts.cluster(sizes.cluster));
    const column = (rows) => new ReadRows(rows.map(([x]) => x));
    entry.set("beta", column(parts.beta(sizes.cluster)));
    entry.set("delta", column(parts.delta(sizes.cluster)));
    if (value.has("flow")) entry.set("flow", column(parts.flow(sizes.flow)).rows);
    if (value.has("sets")) entry.set("sets", sizes.sets.map(parts.sets)); // prettier-ignore
    if (value.has("left_out")) entry.set("left_out", parts.leftOut(sizes.leftOut));
    if (sizes.directions !== null) {
      const counts = parts.along(sizes.cluster);
      const vectors = counts.map((c) => (c ? new ReadRows(parts.directions(1)[0]) : null));
      entry.set("directions", new Map(value.get("directions")).set("beta", vectors));
    }
    if (sizes.local !== null) {
      const counts = parts.counts(sizes.cluster);
      const roots = counts.map((c) => (c ? new ReadRows(parts.local(c - 1)) : null));
      entry.set("roots", new Map(value.get("roots")).set("local", roots));
    }
    return entry;
  }

  /** What the data of a JSON file would be as arrays: their hash. */
  function arraysHash(problem) {
    const { n, d, edges, canonical, terms } = problem;
    const hashes = [];
    const bytesOf = (numbers, size, set) => {
      const view = new DataView(new ArrayBuffer(size * numbers.length));
      numbers.forEach((x, k) => view[set](size * k, x, true));
      hashes.push(sha256(new Uint8Array(view.buffer)));
    };
    const integers = (numbers) => bytesOf(numbers, 4, "setUint32");
    const doubles = (values) => {
      bytesOf(values.map((q) => (q instanceof Rational ? nearest(q) : q)), 8, "setFloat64"); // prettier-ignore
    };
    integers(edges.head);
    integers(edges.tail);
    doubles(problem.weights);
    if (canonical.has("nodes")) hashes.push(sha256(canonicalText(canonical.get("nodes"))));
    const heads = terms.map((term) => {
      const head = new Map([["kind", term.kind], ["rows", term.node.length]]); // prettier-ignore
      const list = term.kind === "ridge" ? term.mu : term.kappa;
      if (term.kind === "ridge" || term.kind === "l1") head.set("wide", Array.isArray(list[0]));
      if (term.kind === "opaque") head.set("name", term.name);
      integers(term.node);
      fieldsOf(head, d).forEach(([key]) => doubles(term[key].flat()));
      return head;
    });
    const head = new Map([
      ["schema", "gtv-problem/1"],
      ["n_nodes", n],
      ["dim", d],
      ["n_edges", edges.length],
      ["lam", canonical.get("lam")],
      ["penalty", canonical.get("penalty")],
      ["terms", heads],
    ]);
    if (canonical.has("nodes")) head.set("nodes", true);
    return sha256(canonicalText(new Map([["data", head], ["sha256", hashes]]))); // prettier-ignore
  }

  // ------------------------------------------------------------------------------------------
  // The door, and figures
  // ------------------------------------------------------------------------------------------

  /**
   * @typedef {object} Answer
   * @property {"CERTIFIED"|"REFUTED"|"UNPROVED"} status
   * @property {string} kind - Class of the reason, such as "malformed", "false document", "budget".
   * @property {string} reason
   * @property {number} exitStatus
   * @property {?Rational} upper - At least P(w).
   * @property {?Rational} lower - At most the minimum of P.
   * @property {Rational} rtol
   * @property {?Rational} distanceSquared
   * @property {string} warning
   * @property {string} claim - What is proved about, "solution" or "partition".
   * @property {?string} sha256 - Of the problem data, as the document states it.
   */

  const NOTHING = { upper: null, lower: null, distanceSquared: null, warning: "" };

  /**
   * Check a document.
   * @param {Uint8Array|string|Bytes} source - Bytes or text of a document, or what they are read
   *   from in pieces: an object with the `length` in bytes and `read(target, at)`, which fills a
   *   Uint8Array with what is at an offset.
   * @param {{data?: Uint8Array|string, rtol?: number, budget?: number}} [options]
   * @returns {Answer}
   */
  function check(source, { data = null, rtol = 1e-6, budget = null } = {}) {
    if (!(rtol >= 0 && rtol < Infinity)) throw new RangeError("rtol must be finite and >= 0");
    const size = source.length + (data === null ? 0 : data.length);
    stepsAllowed = budget ?? Math.max(STEPS, Math.ceil((STEPS * size) / MEGABYTE));
    stepsLeft = stepsAllowed;
    const found = { ...NOTHING };
    const about = { claim: "solution", sha256: null };
    let verdict;
    try {
      decide(source instanceof Uint8Array ? new Bytes(source) : source, data, Rational.double(rtol), found, about);
    } catch (error) {
      if (!(error instanceof Verdict)) throw error;
      verdict = error;
    }
    if (["false document", "malformed"].includes(verdict.kind)) Object.assign(found, NOTHING);
    const { status, kind, message: reason } = verdict;
    const exitStatus = kind === "malformed" ? EXIT.MALFORMED : EXIT[status];
    return { status, kind, reason, exitStatus, ...found, ...about, rtol: Rational.double(rtol) };
  }

  /** Ends with a verdict. */
  function decide(source, data, rtol, found, about) {
    const isText = typeof source === "string";
    const isArrays = !isText && isZip(source);
    const doc = isArrays ? readArrays(source) : readJson(isText ? source : whole(source));
    if (!(doc instanceof Map)) throw malformed("the document must be an object");
    const schema = doc.get("schema");
    if (typeof doc.get("sha256") === "string") about.sha256 = doc.get("sha256");
    const given = data === null ? null : readJson(data, "data: ");
    const isPartition = ["gtv-connectivity/1", PARTITION_ARRAYS].includes(schema);
    if (schema === "gtv-certificate/1" || (doc.has(ARRAYS_HASH) && !isPartition)) {
      checkCertificate(doc, given, rtol, found);
    } else if (isPartition) {
      about.claim = "partition";
      checkPartition(doc, given);
    }
    throw malformed(`schema must be "gtv-certificate/1", got ${shown(schema)}`);
  }

  /** A bound as a double by `round`; null where there is none, or it takes too long to say. */
  function figure(q, round) {
    stepsLeft = stepsAllowed = STEPS;
    try {
      const value = q();
      return value === null ? null : round(value);
    } catch (error) {
      if (error instanceof Verdict) return null;
      throw error;
    }
  }

  /** Figures of an answer, rounded outward to doubles; null beyond them or where not proved. */
  function figures({ status, reason, upper, lower, distanceSquared, rtol, warning }) {
    const gap = () => (upper && lower ? upper.sub(lower) : null);
    const relativeTo = (size) => () => {
      return upper && lower && size().n !== 0n ? gap().div(size()) : null;
    };
    const distance = () => distanceSquared && rootOf(larger(distanceSquared, ZERO)).upper;
    return {
      status,
      reason,
      rel_gap: figure(
        relativeTo(() => larger(ONE, upper.abs())),
        doubleAbove,
      ),
      plain_gap: figure(
        relativeTo(() => upper.abs()),
        doubleAbove,
      ),
      upper: figure(() => upper, doubleAbove),
      gap: figure(gap, doubleAbove),
      rtol: nearest(rtol),
      lower: figure(() => lower, doubleBelow),
      distance_bound: figure(distance, doubleAbove),
      warning,
    };
  }

  /** @returns {string[]} the lines that say what is proved, after the verdict. */
  function proved(answer) {
    const f = figures(answer);
    const lines = [];
    const line = (name, value, text) => {
      if (value !== null)
        lines.push(`  ${name.padEnd(15)}${String(value).padEnd(25)}${text}`.trimEnd());
    };
    line("rel_gap", f.rel_gap, "gap / max(1, |upper|)");
    line("plain_gap", f.plain_gap, "gap / |upper|");
    line("gap", f.gap, "upper - lower");
    line("upper", f.upper, "P(w) is at most that");
    line("lower", f.lower, "the optimum is at least that");
    line("distance_bound", f.distance_bound, "w is at most that far from the solution");
    if (f.warning) lines.push(`warning: ${f.warning}`);
    return lines;
  }

  /** For tests alone. */
  const internals = {
    Rational,
    OneSidedSum,
    rootOf,
    logarithmOf,
    exponentialOf,
    doubleOf,
    hexOf,
    crc32,
    inflate: (bytes, size) => inflate(new Bytes(bytes), 0, bytes.length, size),
  };
  const api = Object.freeze({ check, figures, proved, sha256, EXIT, internals });

  // ------------------------------------------------------------------------------------------
  // Command line
  // ------------------------------------------------------------------------------------------

  const USAGE = "usage: checker.js FILE [--data FILE] [--rtol R] [--budget STEPS] [--json]";

  class BadUsage extends Error {}

  function readArguments(list) {
    const options = { json: false, file: null };
    const rest = [...list];
    while (rest.length) {
      const word = rest.shift();
      if (word === "--json") options.json = true;
      else if (word === "--help" || word === "-h") options.help = true;
      else if (["--data", "--rtol", "--budget"].includes(word)) {
        if (!rest.length) throw new BadUsage(`${word} needs a value`);
        options[word.slice(2)] = rest.shift();
      } else if (options.file === null && !word.startsWith("-")) options.file = word;
      else throw new BadUsage(`unexpected ${word}`);
    }
    if (options.file === null && !options.help) throw new BadUsage("expected a FILE");
    options.rtol = numberIn(options.rtol ?? "1e-6", "--rtol", (x) => x >= 0);
    if (options.budget !== undefined) {
      options.budget = numberIn(options.budget, "--budget", (x) => x >= 1);
    }
    return options;
  }

  function numberIn(text, name, holds) {
    const x = text.trim() === "" ? NaN : Number(text);
    if (!(Number.isFinite(x) && holds(x))) throw new BadUsage(`${name}: not allowed: ${text}`);
    return x;
  }

  /** A file that is read in pieces. */
  class FileSource {
    constructor(fs, path) {
      this.fs = fs;
      this.path = path;
      this.file = fs.openSync(path);
      this.length = fs.fstatSync(this.file).size;
    }

    read(target, at) {
      for (let filled = 0; filled < target.length; ) {
        const left = target.length - filled;
        const count = this.fs.readSync(this.file, target, filled, left, at + filled);
        if (count === 0) throw new BadUsage(`cannot read ${this.path}: it has become shorter`);
        filled += count;
      }
    }
  }

  /** @returns {FileSource|Uint8Array} what can be read at any offset, or all of it. */
  function opened(path) {
    try {
      const fs = require("node:fs");
      return fs.statSync(path).isFile() ? new FileSource(fs, path) : fs.readFileSync(path);
    } catch (error) {
      throw new BadUsage(`cannot read ${path}: ${error.code}`);
    }
  }

  /** @returns {number} the exit status. */
  function main(list) {
    try {
      const options = readArguments(list);
      if (options.help) {
        console.log(USAGE);
        return 0;
      }
      const data = options.data === undefined ? null : whole(opened(options.data));
      const { rtol, budget = null } = options;
      const answer = check(opened(options.file), { data, rtol, budget });
      if (options.json) console.log(JSON.stringify(figures(answer)));
      else console.log([`${answer.status}: ${answer.reason}`, ...proved(answer)].join("\n"));
      return answer.exitStatus;
    } catch (error) {
      const bad = error instanceof BadUsage;
      console.error(
        bad ? `${USAGE}\nchecker.js: ${error.message}` : `internal error: ${error.stack}`,
      );
      return bad ? EXIT.USAGE : EXIT.INTERNAL;
    }
  }

  scope.gtvChecker = api;
  if (typeof module === "object" && typeof require === "function") {
    module.exports = api;
    if (require.main === module) process.exitCode = main(process.argv.slice(2));
  }
})(globalThis);
