// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// prober connects only to schedulers of this node, whose certificates are self-signed.
var prober = &http.Client{
	Timeout:   2 * time.Second,
	Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
}

// Healthy returns why a scheduler is not healthy; empty if it is.
func Healthy(ctx context.Context, url string) string {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err.Error()
	}
	answer, err := prober.Do(request)
	if err != nil {
		return fmt.Sprintf("it does not answer: %v", errors.Unwrap(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 500))
		return fmt.Sprintf("%s returns %s: %s", url, answer.Status, strings.TrimSpace(string(text)))
	}
	return ""
}
