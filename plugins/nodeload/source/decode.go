// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	jsoniter "github.com/json-iterator/go"
)

// rows collects what answers say, until it is certain that they are whole: a refresh must not be half of one server's
// data and half of another's. Its memory is used again for the next refresh.
type rows struct {
	// queries say which terms there can be.
	queries []Query
	// labels tell nodes apart; of has the index of that of each query.
	labels []string
	of     []int
	// most is how many rows there may be.
	most int

	list []storedRow
	// text has the values of the label, one behind the other.
	text []byte
}

type storedRow struct {
	value    float64
	at, size int32
	slot     int16
	kind     Kind
}

func (r *rows) begin(label string, queries []Query) {
	r.queries, r.list, r.text, r.labels, r.of = queries, r.list[:0], r.text[:0], r.labels[:0], r.of[:0]
	for i := range queries {
		of, wanted := 0, queries[i].nodeLabel(label)
		for of < len(r.labels) && r.labels[of] != wanted {
			of++
		}
		if of == len(r.labels) {
			r.labels = append(r.labels, wanted)
		}
		r.of = append(r.of, of)
	}
}

// mark and back undo what an answer said that proved broken.
func (r *rows) mark() (list, text int) { return len(r.list), len(r.text) }

func (r *rows) back(list, text int) { r.list, r.text = r.list[:list], r.text[:text] }

// valued says whether there is a load among the rows: a time or a deviation alone is none.
func (r *rows) valued() bool {
	for i := range r.list {
		if r.list[i].kind == Value {
			return true
		}
	}
	return false
}

// free gives up the memory, when it is far more than refreshes need.
func (r *rows) free() {
	r.queries = nil
	if cap(r.list) > 4*len(r.list)+4096 || cap(r.text) > 4*len(r.text)+128*4096 {
		r.list, r.text = nil, nil
	}
}

func (r *rows) each(row Row) {
	for i := range r.list {
		s := &r.list[i]
		end := s.at + s.size
		row(int(s.slot), s.kind, r.text[s.at:end:end], s.value)
	}
}

// reply is what an answer says besides its rows.
type reply struct {
	status, errorType, message string
	resultType                 string
	evaluated                  float64
	partial                    bool
	warnings                   []string
}

// decoding reads answers as Prometheus writes them; a field that comes in another letter case is not one.
var decoding = jsoniter.Config{CaseSensitive: true}.Froze()

const (
	bufferSize = 64 << 10
	// longestString is more than any label, warning or error has. It is no smaller than the buffer, within which no run
	// is counted.
	longestString = bufferSize
)

// decode reads one answer and adds its rows, in one pass over the bytes as they arrive: of the answer no more is held
// at once than the buffer and the string being read, whose length is bounded too. The rows are worth nothing unless the
// error is nil.
func (r *rows) decode(body io.Reader) (reply, error) {
	source := &remembering{from: body}
	it := jsoniter.Parse(decoding, source, bufferSize)
	d := decoder{rows: r, it: it, found: make([]span, len(r.labels))}
	d.onSeries, d.onSeriesField, d.onMetric = d.series, d.seriesField, d.metric
	whole := it.ReadObjectCB(d.field)
	if whole && d.ok() {
		// Nothing may follow. Looking for it is what ends in io.EOF.
		if it.WhatIsNext(); it.Error == nil {
			d.err = errors.New("something follows the answer")
		}
	}
	reply := d.reply
	switch {
	case source.err != nil && source.err != io.EOF:
		// The cause, and not what the decoder made of it.
		return reply, source.err
	case errors.Is(d.err, errTooLarge):
		return reply, d.err
	case d.err != nil:
		return reply, notPrometheus(d.err.Error())
	case it.Error != io.EOF:
		return reply, notPrometheus(fmt.Sprintf("what its first %d bytes hold is not JSON in its form", source.count))
	case !whole:
		return reply, notPrometheus("it ends too early")
	case reply.status == "error":
		return reply, &refusal{errorType: reply.errorType, message: reply.message}
	case reply.status != "success":
		return reply, notPrometheus("the status is neither success nor error")
	case reply.resultType != "vector":
		return reply, notPrometheus("the result is " + described(reply.resultType) + ", and no vector")
	}
	return reply, nil
}

// described is a type of result that PromQL knows; any other is not repeated.
func described(resultType string) string {
	switch resultType {
	case "matrix", "scalar", "string", "streams":
		return "a " + resultType
	}
	return "of another type"
}

// remembering keeps the error with which reading ended.
type remembering struct {
	from io.Reader
	err  error
	// count is what has been read, quiet how much of it has come since the last quotation mark, and last the byte
	// before.
	count, quiet int
	last         byte
}

// Read implements io.Reader. It ends with an error within a string, or anything else without a quotation mark, that is
// longer than any in an answer: the decoder would hold it as a whole.
func (r *remembering) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	read := p[:n]
	first := len(read)
	for i := 0; i < len(read); i++ {
		if r.ends(read, i) {
			first = i
			break
		}
	}
	if r.quiet += first; r.quiet > longestString {
		n, err = 0, notPrometheus(fmt.Sprintf("it has a string of more than %d bytes", longestString))
	} else if first < len(read) {
		final := len(read) - 1
		for !r.ends(read, final) {
			final--
		}
		r.quiet = len(read) - 1 - final
	}
	if len(read) > 0 {
		r.last = read[len(read)-1]
	}
	r.count += n
	if err != nil {
		r.err = err
	}
	return n, err
}

// ends says whether a string may end, or begin, at a place in what has been read. A quotation mark behind a backslash
// does not count, even if another backslash is before that: others follow in time, unless it is all one string.
func (r *remembering) ends(read []byte, at int) bool {
	if read[at] != '"' {
		return false
	}
	before := r.last
	if at > 0 {
		before = read[at-1]
	}
	return before != '\\'
}

// decoder is the state within one answer. Its methods are called back for each field or element, and return whether to
// go on.
type decoder struct {
	*rows
	it    *jsoniter.Iterator
	reply reply
	err   error
	// The methods as values, made once: making one for each call back costs as much as decoding.
	onSeries                func(*jsoniter.Iterator) bool
	onSeriesField, onMetric func(*jsoniter.Iterator, string) bool

	// Of the series being read:
	slot  int
	kind  Kind
	known bool
	found []span // the value of each of the labels
	value float64
	// A series has a value, or only a histogram.
	valued, histogram bool
}

// span is where a text is.
type span struct{ at, size int32 }

func (d *decoder) fail(format string, args ...interface{}) bool {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
	return false
}

func (d *decoder) ok() bool { return d.err == nil && d.it.Error == nil }

func (d *decoder) field(it *jsoniter.Iterator, name string) bool {
	switch name {
	case "status":
		d.reply.status = it.ReadString()
	case "errorType":
		d.reply.errorType = it.ReadString()
	case "error":
		d.reply.message = it.ReadString()
	case "data":
		it.ReadObjectCB(d.data)
	case "warnings":
		it.ReadArrayCB(d.warning)
	case "isPartial":
		// VictoriaMetrics says so when a part of its storage did not answer.
		d.reply.partial = it.WhatIsNext() == jsoniter.BoolValue && it.ReadBool()
	default:
		it.Skip()
	}
	return d.ok()
}

func (d *decoder) warning(it *jsoniter.Iterator) bool {
	if len(d.reply.warnings) < mostWarnings {
		d.reply.warnings = append(d.reply.warnings, it.ReadString())
	} else {
		it.Skip()
	}
	return d.ok()
}

func (d *decoder) data(it *jsoniter.Iterator, name string) bool {
	switch name {
	case "resultType":
		d.reply.resultType = it.ReadString()
	case "result":
		if d.reply.resultType != "" && d.reply.resultType != "vector" {
			it.Skip()
			break
		}
		it.ReadArrayCB(d.onSeries)
	default:
		it.Skip()
	}
	return d.ok()
}

func (d *decoder) series(it *jsoniter.Iterator) bool {
	d.known, d.valued, d.histogram = false, false, false
	for i := range d.found {
		d.found[i] = span{}
	}
	if it.WhatIsNext() != jsoniter.ObjectValue {
		return d.fail("a series is not an object")
	}
	it.ReadObjectCB(d.onSeriesField)
	if !d.ok() {
		return false
	}
	if !d.known || d.slot >= len(d.queries) || !d.queries[d.slot].asks(d.kind) {
		return d.fail("a series has not got the label %s that was asked for", termLabel)
	}
	if !d.valued {
		return d.histogram || d.fail("a series has no value")
	}
	if len(d.list) >= d.most {
		d.err = tooLarge(fmt.Sprintf("more than %d series", d.most))
		return false
	}
	label := d.found[d.of[d.slot]]
	d.list = append(d.list, storedRow{value: d.value, at: label.at, size: label.size, slot: int16(d.slot), kind: d.kind})
	return true
}

func (d *decoder) seriesField(it *jsoniter.Iterator, name string) bool {
	switch name {
	case "metric":
		it.ReadObjectCB(d.onMetric)
	case "value":
		return d.sample(it)
	case "histogram":
		d.histogram = true
		it.Skip()
	default:
		it.Skip()
	}
	return d.ok()
}

func (d *decoder) metric(it *jsoniter.Iterator, name string) bool {
	if name == termLabel {
		d.slot, d.kind, d.known = term(it.ReadStringAsSlice())
		return d.ok()
	}
	for i, label := range d.labels {
		if name == label {
			at := len(d.text)
			d.text = append(d.text, it.ReadString()...)
			d.found[i] = span{at: int32(at), size: int32(len(d.text) - at)}
			return d.ok()
		}
	}
	it.Skip()
	return d.ok()
}

// sample reads the time and the value, a number in a string because JSON has neither NaN nor infinities.
func (d *decoder) sample(it *jsoniter.Iterator) bool {
	if it.WhatIsNext() != jsoniter.ArrayValue || !it.ReadArray() || it.WhatIsNext() != jsoniter.NumberValue {
		return d.fail("a sample is not an array of a time and a value")
	}
	evaluated := it.ReadFloat64()
	if !it.ReadArray() || it.WhatIsNext() != jsoniter.StringValue {
		return d.fail("a sample's value is not a string")
	}
	// Neither numbers nor terms have anything to unescape: what has is neither.
	text := it.ReadStringAsSlice()
	value, err := strconv.ParseFloat(string(text), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return d.fail("a sample's value is not a number")
	}
	if it.ReadArray() {
		return d.fail("a sample is more than a time and a value")
	}
	if math.IsNaN(evaluated) || math.IsInf(evaluated, 0) {
		return d.fail("a sample's time is not a number")
	}
	d.value, d.valued = value, true
	if evaluated > d.reply.evaluated {
		d.reply.evaluated = evaluated
	}
	return d.ok()
}
