// SPDX-License-Identifier: Apache-2.0

// Package answers serves values as JSON, and errors as a metav1.Status, over HTTP.
package answers

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf16"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

// NextCommand is the cause in a Status whose message is the next command to run.
const NextCommand metav1.CauseType = "NextCommand"

// Refusal is an error that is served as a metav1.Status, with its code.
type Refusal struct{ apierrors.StatusError }

// Refuse returns an error with a code of HTTP: what is wrong, and the next command to run.
func Refuse(code int, message, next string) *Refusal {
	refusal := &Refusal{*apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false)}
	status := &refusal.ErrStatus
	status.Kind, status.APIVersion, status.Message = "Status", "v1", message
	status.Details.Causes = []metav1.StatusCause{{Type: NextCommand, Message: next}}
	if code == http.StatusTooManyRequests {
		status.Details.RetryAfterSeconds = 1
	}
	return refusal
}

// About sets the object that is refused.
func (r *Refusal) About(kind, name string) *Refusal {
	r.ErrStatus.Details.Kind, r.ErrStatus.Details.Name = kind, name
	return r
}

// Answer returns a handler for GET and HEAD that serves what answer returns as JSON, and its error as a metav1.Status.
func Answer(answer func(request *http.Request) (interface{}, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		content, err := []byte(nil), CheckMethod(w, request, http.MethodGet, http.MethodHead)
		if err == nil {
			var found interface{}
			if found, err = answer(request); err == nil {
				content, err = json.Marshal(found)
			}
		}
		Send(w, request, content, err)
	})
}

// CheckMethod returns an error for a request with another method, and sets the header with the allowed ones.
func CheckMethod(w http.ResponseWriter, request *http.Request, allowed ...string) error {
	for _, method := range allowed {
		if request.Method == method {
			return nil
		}
	}
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	return Refuse(http.StatusMethodNotAllowed, request.Method+" is not allowed for "+request.URL.Path, "GET "+request.URL.Path)
}

// harmless escapes what a terminal would interpret or hide in JSON: control characters, and those that change the text
// direction. Such characters are only in strings.
func harmless(content []byte) []byte {
	if bytes.IndexFunc(content, isHidden) < 0 {
		return content
	}
	var safe bytes.Buffer
	for _, r := range string(content) {
		if !isHidden(r) {
			safe.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&safe, `\u%04x`, unit)
		}
	}
	return safe.Bytes()
}

func isHidden(r rune) bool { return r >= 0x7f && !strconv.IsGraphic(r) }

// bytesToCompress is the size from which compression is worth its time.
const bytesToCompress = 8 << 10

// Send writes JSON, or an error as a metav1.Status. It compresses large answers if the client accepts that.
func Send(w http.ResponseWriter, request *http.Request, content []byte, err error) {
	code := http.StatusOK
	if err != nil {
		refusal, ok := err.(*Refusal)
		if !ok {
			refusal = Refuse(http.StatusInternalServerError, err.Error(), "see the scheduler's log")
		}
		if seconds := refusal.ErrStatus.Details.RetryAfterSeconds; seconds > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(seconds)))
		}
		code = int(refusal.ErrStatus.Code)
		if content, err = json.Marshal(refusal.ErrStatus); err != nil {
			klog.ErrorS(err, "Failed to encode an error", "status", refusal.ErrStatus)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Vary", "Accept-Encoding")
	content = append(harmless(content), '\n')
	if len(content) >= bytesToCompress && strings.Contains(request.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Encoding", "gzip")
		var compressed bytes.Buffer
		// Neither the level nor the buffer causes an error.
		writer, _ := gzip.NewWriterLevel(&compressed, gzip.BestSpeed)
		_, _ = writer.Write(content)
		_ = writer.Close()
		content = compressed.Bytes()
	}
	w.WriteHeader(code)
	if _, err := w.Write(content); err != nil {
		klog.V(4).InfoS("Failed to send an answer", "err", err)
	}
}
