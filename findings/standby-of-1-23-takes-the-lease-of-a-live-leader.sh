#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A leader with a long lease, and a standby with a shorter --leader-elect-lease-duration, by release of the standby.
#
# Guess: leaseDurationSeconds in the Lease is the leader's promise, and every candidate waits that long before it takes
# the lease. So a new scheduler with a longer lease than the default is safe next to a standby of 1.23.
# Really: client-go v0.23 (v0.26 as well, read) writes the field and never reads it: a standby waits for its own lease
# duration. Here a leader has a lease of 12 s and renews every 8 s. A standby of v0.23.17 with a lease of 4 s takes it
# after about 5 s, and two schedulers are active until the old leader fails to renew. A standby of v0.37.2 waits as long
# as the Lease says (v0.33 as well, read). So --leader-elect-lease-duration is not a setting of the leader alone: raise
# it on every standby of 1.23 before any leader renews more slowly, and lower it there last.
# Versions: k8s.io/client-go v0.23.17 and v0.37.2.
# Source: k8s.io/client-go tools/leaderelection/leaderelection.go, tryAcquireOrRenew (le.config.LeaseDuration in
# v0.23.17, isLeaseValid with the observed record in v0.37.2).
#
# Needs Go 1.26 or newer and a Go module proxy; compiles client-go twice. Exit: 0 as described; 1 something has changed.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export GOWORK=off GOFLAGS=-mod=mod

cat > main.go <<'GO'
package main

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const (
	leaderDuration, leaderRenews      = 12, 8 * time.Second
	standbyDuration, standbyRenewal   = 4 * time.Second, 3 * time.Second
	namespace, name, leader, observed = "kube-system", "kube-scheduler", "leader", 20 * time.Second
)

func main() {
	holder, seconds, now := leader, int32(leaderDuration), metav1.NowMicro()
	client := fake.NewSimpleClientset(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now,
		},
	})
	leases := client.CoordinationV1().Leases(namespace)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for range time.Tick(leaderRenews) {
			lease, err := leases.Get(ctx, name, metav1.GetOptions{})
			if err != nil || *lease.Spec.HolderIdentity != leader {
				return
			}
			renewed := metav1.NowMicro()
			lease.Spec.RenewTime = &renewed
			if _, err := leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
				return
			}
		}
	}()
	start, taken := time.Now(), make(chan time.Duration, 1)
	go leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: namespace, Name: name},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: "standby"},
		},
		LeaseDuration: standbyDuration, RenewDeadline: standbyRenewal, RetryPeriod: time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { taken <- time.Since(start) },
			OnStoppedLeading: func() {},
		},
	})
	select {
	case after := <-taken:
		fmt.Println("taken before the leader renews:", after < leaderRenews)
	case <-time.After(observed):
		fmt.Println("not taken in", observed)
	}
}
GO

for version in v0.23.17 v0.37.2; do
  mkdir "$version"
  cp main.go "$version/"
  cat > "$version/go.mod" <<MOD
module finding

go 1.26.0

require (
	k8s.io/api $version
	k8s.io/apimachinery $version
	k8s.io/client-go $version
)
MOD
  answer=$(cd "$version" && go run . 2> log) || { cat "$version/log"; exit 1; }
  (cd "$version" && go list -m k8s.io/client-go)
  echo "$version: $answer" | tee -a output
done
cat > expected <<'TXT'
v0.23.17: taken before the leader renews: true
v0.37.2: not taken in 20s
TXT
diff -u expected output || { echo "a standby waits for another duration now" >&2; exit 1; }
