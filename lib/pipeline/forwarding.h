#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The packet's way, in a few lines. Front runs where the packet was received, Back on the session's owner; with one
// worker both are one direct call.
#include "pipeline/pipeline.h"
#include "pipeline/stages/1_rx.h"
#include "pipeline/stages/2_parse.h"
#include "pipeline/stages/3_install.h"
#include "pipeline/stages/3_session.h"
#include "pipeline/stages/4_acl.h"
#include "pipeline/stages/5_route.h"
#include "pipeline/stages/6_qos.h"
#include "pipeline/stages/7_tx.h"

namespace cachewire::pipeline {

using Front = Pipeline<stages::Rx, stages::Parse>;
// Install: permitted and routed packets without a session get one; it is the session stage's second half.
using Back = PipelineAfter<Front::kWrites, stages::Session, stages::Acl, stages::Route, stages::Install, stages::Qos,
                           stages::Tx>;

}  // namespace cachewire::pipeline
