// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"compress/gzip"
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
