// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// got is a row as a test sees it.
type got struct {
	Slot  int
	Kind  Kind
	Label string
	Value float64
}

// twoQueries have all kinds, and value and timestamp.
var twoQueries = []Query{
	{Name: "cpu", Value: "a", Timestamp: "b", Deviation: "c"},
	{Name: "memory", Value: "d", Timestamp: "e"},
}

func decoded(body io.Reader, most int) ([]got, reply, error) {
	r := rows{most: most}
	r.begin("instance", twoQueries)
	reply, err := r.decode(body)
	var all []got
	r.each(func(slot int, kind Kind, label []byte, value float64) {
		all = append(all, got{slot, kind, string(label), value})
	})
	return all, reply, err
}

func vector(series ...string) string {
	return `{"status":"success","data":{"resultType":"vector","result":[` + strings.Join(series, ",") + `]}}`
}

func series(instance, term, value string) string {
	return fmt.Sprintf(`{"metric":{"instance":%q,"nodeload_term":%q},"value":[1700000000.25,%q]}`, instance, term, value)
}

// TestDecodeTakesEachQuerysLabel: the label that tells nodes apart may come before or after what tells queries apart.
func TestDecodeTakesEachQuerysLabel(t *testing.T) {
	queries := []Query{{Name: "cpu", Value: "a"}, {Name: "gpu", Value: "b", Label: "Hostname"}, {Name: "fan", Value: "c", Label: "zone"}}
	r := rows{most: 10}
	r.begin("instance", queries)
	series := func(term string) string {
		return `{"metric":{"Hostname":"h","instance":"i","nodeload_term":"` + term + `","zone":"z"},"value":[1700000000,"1"]}`
	}
	answer := vector(series("0v"), series("1v"), series("2v"), `{"metric":{"instance":"i","nodeload_term":"1v"},"value":[1700000000,"1"]}`)
	if _, err := r.decode(strings.NewReader(answer)); err != nil {
		t.Fatal(err)
	}
	var labels []string
	r.each(func(_ int, _ Kind, label []byte, _ float64) { labels = append(labels, string(label)) })
	if want := []string{"i", "h", "z", ""}; !reflect.DeepEqual(labels, want) {
		t.Errorf("the labels are %q, want %q", labels, want)
	}
}

func TestDecodeTakesWhatServersWrite(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for name, test := range map[string]struct {
		answer string
		want   []got
	}{
		"nothing":          {vector(), nil},
		"null for nothing": {`{"status":"success","data":{"resultType":"vector","result":null}}`, nil},
		"every kind, in no order": {
			vector(series("a", "1t", "17"), series("b", "0d", "0.5"), series("a", "0v", "1e-3")),
			[]got{{1, Timestamp, "a", 17}, {0, Deviation, "b", 0.5}, {0, Value, "a", 0.001}},
		},
		"what is no finite number is handed on as it is": {
			vector(series("a", "0v", "NaN"), series("b", "0v", "+Inf"), series("c", "0v", "-Inf"), series("d", "0v", "-5035"), series("e", "0v", "1e999")),
			[]got{{0, Value, "a", nan}, {0, Value, "b", inf}, {0, Value, "c", -inf}, {0, Value, "d", -5035}, {0, Value, "e", inf}},
		},
		"duplicates are both handed on": {
			vector(series("a", "0v", "1"), series("a", "0v", "2")),
			[]got{{0, Value, "a", 1}, {0, Value, "a", 2}},
		},
		"series without the label have an empty one": {
			vector(`{"metric":{"nodeload_term":"0v"},"value":[1,"2"]}`),
			[]got{{0, Value, "", 2}},
		},
		"other labels, escapes and other fields do not disturb": {
			vector(`{"metric":{"__name__":"x","path":"C:\\\"\u003c]}","instance":"\u00e9\"\\","nodeload_term":"0v"},"more":{"a":[{}]},"value":[1,"2"]}`),
			[]got{{0, Value, "é\"\\", 2}},
		},
		"the order of fields does not count, nor does space": {
			" {\n\"data\" : { \"result\" : [ { \"value\" : [ 1 , \"2\" ] , \"metric\" : { \"nodeload_term\" : \"0v\" , \"instance\" : \"a\" } } ] , " +
				"\"resultType\":\"vector\" } , \"status\":\"success\" }\n",
			[]got{{0, Value, "a", 2}},
		},
		"histograms are left out": {
			vector(`{"metric":{"instance":"a","nodeload_term":"0v"},"histogram":[1,{"count":"5","buckets":[[0,"1","2","3"]]}]}`, series("b", "0v", "1")),
			[]got{{0, Value, "b", 1}},
		},
		"of a label given twice the last counts": {
			vector(`{"metric":{"instance":"first","instance":"a","nodeload_term":"0v"},"value":[1,"2"]}`),
			[]got{{0, Value, "a", 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			all, _, err := decoded(strings.NewReader(test.answer), 10)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, all, cmpopts.EquateNaNs()); diff != "" {
				t.Error(diff)
			}
			// The same in the smallest pieces that there can be.
			slowly, _, err := decoded(iotest.OneByteReader(strings.NewReader(test.answer)), 10)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(all, slowly, cmpopts.EquateNaNs()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDecodeReadsWhatIsBesidesTheSeries(t *testing.T) {
	answer := `{"status":"success","isPartial":true,"warnings":["a","b","c","d","e","f","` + strings.Repeat("x", 10000) + `"],"infos":["i"],` +
		`"data":{"stats":{"timings":{}},"resultType":"vector","result":[` + series("a", "0v", "1") + `]}}`
	_, reply, err := decoded(strings.NewReader(answer), 10)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, reply.warnings); diff != "" {
		t.Errorf("five warnings are kept: %s", diff)
	}
	if !reply.partial || reply.evaluated != 1700000000.25 {
		t.Errorf("partial %v and evaluated at %v", reply.partial, reply.evaluated)
	}
}

func TestDecodeRefusesWhatIsNoAnswer(t *testing.T) {
	good := series("a", "0v", "1")
	for name, answer := range map[string]string{
		"empty":                         "",
		"null":                          "null",
		"a page":                        "<html><body>Welcome</body></html>",
		"a number":                      "5035",
		"an array":                      "[" + vector(good) + "]",
		"noise":                         "\x00\x01\xff\xfe{{{{",
		"an empty object":               "{}",
		"no status":                     `{"data":{"resultType":"vector","result":[]}}`,
		"another status":                `{"status":"fine","data":{"resultType":"vector","result":[]}}`,
		"no data":                       `{"status":"success"}`,
		"data of null":                  `{"status":"success","data":null}`,
		"no type of result":             `{"status":"success","data":{"result":[` + good + `]}}`,
		"a scalar":                      `{"status":"success","data":{"resultType":"scalar","result":[1700000000,"1"]}}`,
		"a scalar, its type last":       `{"status":"success","data":{"result":[1700000000,"1"],"resultType":"scalar"}}`,
		"a matrix":                      `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[1,"2"]]}]}}`,
		"a matrix, its type last":       `{"status":"success","data":{"result":[` + good + `],"resultType":"matrix"}}`,
		"something behind it":           vector(good) + "x",
		"two answers":                   vector(good) + vector(good),
		"a comma too many":              vector(good, ""),
		"a series that is null":         vector("null"),
		"a series that is a string":     vector(`"a"`),
		"a series without a value":      vector(`{"metric":{"nodeload_term":"0v"}}`),
		"a value that is a number":      vector(`{"metric":{"nodeload_term":"0v"},"value":[1,2]}`),
		"a value that is null":          vector(`{"metric":{"nodeload_term":"0v"},"value":[1,null]}`),
		"a value that is no number":     vector(series("a", "0v", "much")),
		"a value that is empty":         vector(series("a", "0v", "")),
		"a sample without a value":      vector(`{"metric":{"nodeload_term":"0v"},"value":[1]}`),
		"a sample without anything":     vector(`{"metric":{"nodeload_term":"0v"},"value":[]}`),
		"a sample that is an object":    vector(`{"metric":{"nodeload_term":"0v"},"value":{}}`),
		"a sample of three":             vector(`{"metric":{"nodeload_term":"0v"},"value":[1,"2","3"]}`),
		"a time that is a string":       vector(`{"metric":{"nodeload_term":"0v"},"value":["1","2"]}`),
		"a time beyond all numbers":     vector(`{"metric":{"nodeload_term":"0v"},"value":[1e999,"2"]}`),
		"no term":                       vector(`{"metric":{"instance":"a"},"value":[1,"2"]}`),
		"a slot that was not asked":     vector(series("a", "2v", "1")),
		"a kind that was not asked":     vector(series("a", "1d", "1")),
		"a term of another kind":        vector(series("a", "0x", "1")),
		"a term with a sign":            vector(series("a", "-0v", "1")),
		"a term that is far too long":   vector(series("a", "000000000000000000000v", "1")),
		"a term that is only a letter":  vector(series("a", "v", "1")),
		"deep nesting in place of data": `{"status":"success","data":` + strings.Repeat("[", 1000000),
		"deep nesting beside the data":  `{"x":` + strings.Repeat(`{"a":`, 200000) + "1" + strings.Repeat("}", 200000) + `,"status":"success"}`,
		"deep nesting in a series":      vector(`{"metric":{"a":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + `},"value":[1,"2"]}`),
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := decoded(strings.NewReader(answer), 10)
			if err == nil {
				t.Fatal("no error")
			}
			if oneByOne(err) {
				t.Errorf("asking for resources one by one would not help here: %v", err)
			}
			if !strings.Contains(err.Error(), "next: ") || len(err.Error()) > 600 {
				t.Errorf("the message does not help: %v", err)
			}
		})
	}
}

func TestDecodeRefusesAnAnswerThatIsCutOffAnywhere(t *testing.T) {
	whole := `{"status":"success","isPartial":false,"warnings":["w"],"data":{"resultType":"vector","result":[` +
		series("a", "0v", "1") + `,{"metric":{"instance":"\u00e9","x":"y","nodeload_term":"1t"},"more":[1.5,true,null],"value":[1,"2"]}]}}`
	if _, _, err := decoded(strings.NewReader(whole), 10); err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		if _, _, err := decoded(strings.NewReader(whole[:i]), 10); err == nil {
			t.Errorf("no error after the first %d bytes: %s", i, whole[:i])
		}
	}
}

func TestDecodeTellsARefusalFromAFailure(t *testing.T) {
	_, _, err := decoded(strings.NewReader(`{"status":"error","errorType":"execution","error":"many-to-many matching not allowed"}`), 10)
	if !oneByOne(err) || !strings.Contains(err.Error(), "execution: many-to-many matching not allowed") {
		t.Errorf("got %v", err)
	}
	_, _, err = decoded(strings.NewReader(vector(series("a", "0v", "1"), series("b", "0v", "1"), series("c", "0v", "1"))), 2)
	if !errors.Is(err, errTooLarge) || !oneByOne(err) {
		t.Errorf("a third series where two are allowed: got %v", err)
	}
	broken := errors.New("the connection broke")
	_, _, err = decoded(io.MultiReader(strings.NewReader(vector(series("a", "0v", "1"))[:60]), iotest.ErrReader(broken)), 10)
	if !errors.Is(err, broken) {
		t.Errorf("got %v, and not why reading ended", err)
	}
}

// FuzzDecode: whatever comes, decoding ends without a panic, stays within its bounds, and says the same whether it
// comes at once or in pieces.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		vector(), vector(series("a", "0v", "1"), series("b:9100", "1t", "NaN")), vector(series("a", "0d", "+Inf")) + " ",
		`{"status":"error","errorType":"bad_data","error":"x"}`, `{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}`,
		vector(`{"metric":{"instance":"\u00e9\ud83d\ude00\\","nodeload_term":"0v"},"value":[1.5e3,"0x1p-2"],"x":[[{}],-0.1,true,null]}`),
		`{"warnings":["a"],"isPartial":true,"status":"success","data":null}`, "[", "{\"a\":", "\"\\u12", "nul", "-", "1e",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, answer []byte) {
		all, reply, err := decoded(strings.NewReader(string(answer)), 5)
		if len(all) > 5 || len(reply.warnings) > mostWarnings {
			t.Fatalf("%d series and %d warnings", len(all), len(reply.warnings))
		}
		slowly, _, slowErr := decoded(iotest.OneByteReader(strings.NewReader(string(answer))), 5)
		if (err == nil) != (slowErr == nil) {
			t.Fatalf("at once: %v; in pieces: %v", err, slowErr)
		}
		if err == nil {
			if diff := cmp.Diff(all, slowly, cmpopts.EquateNaNs()); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

func TestDecodeHoldsNoEndlessText(t *testing.T) {
	const size = 40 << 20
	for name, test := range map[string]struct{ before, piece string }{
		"a label":                    {`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"instance":"`, "x"},
		"a label of quotation marks": {`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"instance":"`, `\"`},
		"a warning":                  {`{"status":"success","warnings":["`, "x"},
		"an error":                   {`{"status":"error","error":"`, "x"},
		"a field's name":             {`{"`, "x"},
		"a number":                   {`{"status":"success","data":{"resultType":"vector","result":[{"value":[`, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			text := test.before + strings.Repeat(test.piece, size/len(test.piece))
			used := allocated(func() { _, _, err = decoded(strings.NewReader(text), 10) })
			if err == nil || oneByOne(err) || !strings.Contains(err.Error(), "65536 bytes") || len(err.Error()) > 600 {
				t.Errorf("got %v", err)
			}
			if used > 2<<20 {
				t.Errorf("%d bytes were allocated", used)
			}
		})
	}
	long := strings.Repeat("x", 60000)
	if all, _, err := decoded(strings.NewReader(vector(series(long, "0v", "1"), series(long, "1v", "1"))), 10); err != nil || len(all) != 2 {
		t.Errorf("what is shorter is decoded: got %d rows, %v", len(all), err)
	}
}

func TestMemoryIsGivenUpWhenItIsFarMoreThanNeeded(t *testing.T) {
	few := make([]storedRow, 10)
	for name, test := range map[string]struct {
		rows rows
		kept bool
	}{
		"an ordinary refresh": {rows{list: few, text: make([]byte, 1000, 2000)}, true},
		"many rows once":      {rows{list: few[:10:10], text: make([]byte, 1000, 8<<20)}, false},
		"long labels once":    {rows{list: make([]storedRow, 10, 100000), text: make([]byte, 1000)}, false},
	} {
		if test.rows.free(); (test.rows.list != nil) != test.kept || (test.rows.text != nil) != test.kept {
			t.Errorf("%s: %d rows and %d bytes are kept", name, cap(test.rows.list), cap(test.rows.text))
		}
	}
}
