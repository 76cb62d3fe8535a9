// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	rl "k8s.io/client-go/tools/leaderelection/resourcelock"
)

// TestReleaseAfterAnInterruptedRenewal ends a leader during a request of its renewal. Its requests are GET and POST to
// acquire the lease, GET and PUT to renew it, and then those of the release: PUT, and GET and PUT until one succeeds.
func TestReleaseAfterAnInterruptedRenewal(t *testing.T) {
	other, resource := "other", schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for name, tt := range map[string]struct {
		interrupted int // the number of the request that gets no answer
		applied     bool
		changed     int // the number of the request before which the lease changes
		change      func(*coordinationv1.Lease)
		want        string
	}{
		"a read":                       {interrupted: 3},
		"a renewal that is applied":    {interrupted: 4, applied: true},
		"a renewal that is not":        {interrupted: 4},
		"one that is applied too late": {interrupted: 4, applied: true, changed: 7, change: func(lease *coordinationv1.Lease) { lease.ResourceVersion += "1" }},
		"one of an earlier leader":     {interrupted: 4, applied: true, changed: 6, change: func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = &other }, want: other},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			var lease *coordinationv1.Lease
			// apply refuses updates of old versions, as the API server does.
			apply := func(method string, sent *coordinationv1.Lease) (int, interface{}) {
				switch {
				case method == http.MethodGet && lease == nil:
					return http.StatusNotFound, errors.NewNotFound(resource, "lock").Status()
				case method == http.MethodGet:
					return http.StatusOK, lease
				case lease != nil && sent.ResourceVersion != lease.ResourceVersion:
					return http.StatusConflict, errors.NewConflict(resource, "lock", nil).Status()
				}
				sent.ResourceVersion += "1"
				lease = sent
				return http.StatusOK, sent
			}
			requests := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				sent := &coordinationv1.Lease{}
				if err := json.NewDecoder(request.Body).Decode(sent); err != nil && err != io.EOF {
					t.Error(err)
				}
				if requests++; requests == tt.changed {
					tt.change(lease)
				}
				if requests == tt.interrupted && !tt.applied {
					cancel()
					<-request.Context().Done()
					return
				}
				code, answer := apply(request.Method, sent)
				if requests == tt.interrupted {
					cancel()
					<-request.Context().Done()
					return
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(code)
				json.NewEncoder(w).Encode(answer)
			}))
			defer server.Close()
			elector, err := NewLeaderElector(LeaderElectionConfig{
				Lock: &rl.LeaseLock{
					LeaseMeta:  metav1.ObjectMeta{Namespace: "kube-system", Name: "lock"},
					Client:     kubernetes.NewForConfigOrDie(&rest.Config{Host: server.URL, QPS: -1}).CoordinationV1(),
					LockConfig: rl.ResourceLockConfig{Identity: "me"},
				},
				LeaseDuration: time.Hour, RenewDeadline: time.Minute, RetryPeriod: time.Millisecond, ReleaseOnCancel: true,
				Callbacks: LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
			})
			if err != nil {
				t.Fatal(err)
			}
			elector.Run(ctx)
			if holder := *lease.Spec.HolderIdentity; holder != tt.want {
				t.Errorf("after the end of the leader, %q holds the lease, want %q", holder, tt.want)
			}
		})
	}
}
