// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestLargeAnswersAreCompressedForClientsThatAcceptIt(t *testing.T) {
	large := strings.Repeat("a", bytesToCompress)
	for _, tt := range []struct {
		answer, accept string
		want           string
	}{{large, "gzip, deflate", "gzip"}, {large, "", ""}, {"small", "gzip", ""}} {
		request := httptest.NewRequest("GET", "/", nil)
		request.Header.Set("Accept-Encoding", tt.accept)
		sent := httptest.NewRecorder()
		Answer(func(*http.Request) (interface{}, error) { return tt.answer, nil }).ServeHTTP(sent, request)
		body := io.Reader(sent.Body)
		if got := sent.Header().Get("Content-Encoding"); got != tt.want {
			t.Errorf("%d bytes, %q: encoding %q, want %q", len(tt.answer), tt.accept, got, tt.want)
		} else if got == "gzip" {
			var err error
			if body, err = gzip.NewReader(sent.Body); err != nil {
				t.Fatal(err)
			}
		}
		if content, err := io.ReadAll(body); err != nil || string(content) != `"`+tt.answer+"\"\n" {
			t.Errorf("%q: got %d bytes (%v)", tt.accept, len(content), err)
		}
	}
}

func TestAnswersHaveNoHiddenCharacters(t *testing.T) {
	const text = "ä\u009b31m\u202e\U000e0001\x1b\x7f"
	sent := httptest.NewRecorder()
	Answer(func(*http.Request) (interface{}, error) { return text, nil }).ServeHTTP(sent, httptest.NewRequest("GET", "/", nil))
	const want = `"ä\u009b31m\u202e\udb40\udc01\u001b\u007f"` + "\n"
	got := sent.Body.String()
	var decoded string
	if err := json.Unmarshal([]byte(got), &decoded); err != nil || got != want || decoded != text {
		t.Errorf("%s is sent as %s, and read as %q (%v)", want, got, decoded, err)
	}
}
