// SPDX-License-Identifier: Apache-2.0

// Package extendernodes removes nodes from an extender's answer that the scheduler did not send: such a node may have
// failed a filter, or may not exist. It is not a plugin: the scheduler's HTTPExtender calls it. An extender is
// identified by its urlPrefix.
package extendernodes

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/pluginmetrics"
)

var unknownNodes = pluginmetrics.NewCounterVec("extender_unknown_nodes_total",
	"Number of nodes in an extender's answers that were not sent to it, by the extender's urlPrefix and by verb. They are dropped.",
	"extender", "verb")

// KeepNodes drops and counts nodes in the answer to filter that were not sent. If no other node is left, it returns
// upstream's error for an unknown node name. Without an error, the extender would have rejected all nodes: it could not
// be ignored, and pods would be evicted for nothing.
func KeepNodes(extender string, pod *v1.Pod, sent map[string]*v1.Node, answer *v1.NodeList) error {
	kept, unknown := answer.Items[:0], ""
	for _, node := range answer.Items {
		if sent[node.Name] != nil {
			kept = append(kept, node)
		} else {
			unknown = node.Name
		}
	}
	extender, dropped := WithoutCredentials(extender), len(answer.Items)-len(kept)
	// Adding 0 creates the counter with the first call.
	unknownNodes.WithLabelValues(extender, "filter").Add(float64(dropped))
	answer.Items = kept
	if dropped == 0 {
		return nil
	}
	klog.V(2).InfoS("Dropped nodes from an extender's answer that were not sent to it", "extender", extender, "pod", klog.KObj(pod),
		"dropped", dropped, "kept", len(kept), "example", unknown)
	if len(kept) == 0 {
		return fmt.Errorf("extender %q claims a filtered node %q which is not found in the input node list", extender, unknown)
	}
	return nil
}

// CheckVictims returns an error for an answer to preempt with a node that was not sent, or with null instead of
// victims, for which the scheduler would panic.
func CheckVictims(extender string, sent map[string]*extenderv1.Victims, answer map[string]*extenderv1.MetaVictims) error {
	for name, victims := range answer {
		if _, found := sent[name]; !found {
			return fmt.Errorf("extender %q returns victims on node %q, which was not sent to it", WithoutCredentials(extender), name)
		}
		isNull := victims == nil
		for i := 0; !isNull && i < len(victims.Pods); i++ {
			isNull = victims.Pods[i] == nil
		}
		if isNull {
			return fmt.Errorf("extender %q returns null for victims on node %q", WithoutCredentials(extender), name)
		}
	}
	return nil
}

// WithoutCredentials returns the urlPrefix of an extender without user, password and query, as it may be shown.
func WithoutCredentials(prefix string) string {
	parsed, err := url.Parse(prefix)
	// An address without a scheme may have the password in the opaque part.
	if err != nil || parsed.Opaque != "" {
		return "(not a URL)"
	}
	parsed.User, parsed.RawQuery, parsed.Fragment = nil, "", ""
	return parsed.String()
}

// hidden is a key that reads REDACTED in an encoded configuration, as in the output of kubectl config view.
var hidden, _ = base64.StdEncoding.DecodeString("REDACTED")

// WithoutSecrets returns a copy of an extender's configuration as it may be shown: without a private key, and without
// user, password and query in its address.
func WithoutSecrets(extender *config.Extender) *config.Extender {
	extender = extender.DeepCopy()
	extender.URLPrefix = WithoutCredentials(extender.URLPrefix)
	if tls := extender.TLSConfig; tls != nil && len(tls.KeyData) > 0 {
		tls.KeyData = hidden
	}
	return extender
}

// RequestError returns the error of a request to an extender without the URL, which net/http includes.
func RequestError(extender string, err error) error {
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return fmt.Errorf("%s %s: %w", failed.Op, extender, failed.Err)
	}
	return err
}
